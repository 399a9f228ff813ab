#include "gateway/config/config_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>

namespace braid {
namespace {

unsigned fromZero(int v) {
  return v < 0 ? 0 : static_cast<unsigned>(v) + 1;
}

YamlError errorAt(const YAML::Mark& mark, std::string problem, std::string remedy) {
  return {fromZero(mark.line), fromZero(mark.column), std::move(problem), std::move(remedy)};
}

// Builds the tree from the parser's events. Reports an error by throwing YamlError, which
// parseYaml() catches.
class TreeBuilder : public YAML::EventHandler {
 public:
  ConfigNode take() { return std::move(root_); }
  bool empty() const { return !any_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      throw errorAt(mark, "a second document starts here", "keep one document per file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuseAnchor(mark, anchor);
    add(mark, ConfigNode::Kind::kNull, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw errorAt(mark, "aliases (*name) are not supported", "write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuseAnchor(mark, anchor);
    refuseTag(mark, tag);
    add(mark, ConfigNode::Kind::kScalar, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kSequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  static void refuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      throw errorAt(mark, "anchors (&name) are not supported",
                    "write the value out where it is needed");
    }
  }
  // For untagged plain and quoted values the parser reports the tags "?" and "!".
  static void refuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw errorAt(mark, "tags (!name) are not supported", "remove the tag");
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            ConfigNode::Kind kind) {
    refuseAnchor(mark, anchor);
    refuseTag(mark, tag);
    if (open_.size() >= kMaxConfigDepth) throw errorAt(mark, "nested too deeply", "remove levels");
    open_.push_back(add(mark, kind, {}));
  }
  void close() { open_.pop_back(); }

  // The result points into its parent's items. It stays valid while the node is open, because the
  // parent gets further items only after the node was closed.
  ConfigNode* add(const YAML::Mark& mark, ConfigNode::Kind kind, const std::string& text) {
    any_ = true;
    if (++nodes_ > kMaxConfigNodes) throw errorAt(mark, "too many values", "shorten the file");
    ConfigNode node{kind, fromZero(mark.line), fromZero(mark.column), text, {}, {}};
    if (open_.empty()) {
      root_ = std::move(node);
      return &root_;
    }
    ConfigNode& parent = *open_.back();
    if (parent.kind == ConfigNode::Kind::kMap && parent.keys.size() == parent.items.size()) {
      if (kind != ConfigNode::Kind::kScalar) {
        throw errorAt(mark, "a key must be plain text",
                      "write 'key: value'; quote values that start with { or [");
      }
      parent.keys.push_back({text, node.line, node.column});
      return nullptr;
    }
    parent.items.push_back(std::move(node));
    return &parent.items.back();
  }

  ConfigNode root_;
  std::vector<ConfigNode*> open_;
  size_t nodes_ = 0;
  size_t documents_ = 0;
  bool any_ = false;
};

// The parser silently takes some control bytes for line ends or indentation.
std::optional<YamlError> findControlByte(std::string_view text) {
  unsigned line = 1, column = 1;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f) {
      return YamlError{line, column, "control character " + std::to_string(byte),
                       "save the file as plain UTF-8 text"};
    }
    ++column;
    if (c == '\n') ++line, column = 1;
  }
  return std::nullopt;
}

// A tab before the first word of a line, up to the line of a mistake.
std::optional<YamlError> findTab(std::string_view text, int lastLine) {
  for (int line = 0; line <= lastLine && !text.empty(); ++line) {
    const std::string_view indentation = text.substr(0, text.find_first_not_of(" \t"));
    if (size_t tab = indentation.find('\t'); tab != std::string_view::npos)
      return YamlError{fromZero(line), fromZero(static_cast<int>(tab)),
                       "a tab is in the indentation", "write blanks instead: YAML takes no tabs"};
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return std::nullopt;
}

YamlError syntaxError(std::string_view text, const YAML::Exception& error) {
  if (std::optional<YamlError> tab = findTab(text, error.mark.line)) return *tab;
  if (error.msg == YAML::ErrorMsg::MAP_VALUE || error.msg == YAML::ErrorMsg::END_OF_MAP)
    return errorAt(error.mark, "not valid YAML: this line does not fit to those above it",
                   "give the keys of one section the same indentation, and quote texts with ': '");
  return errorAt(error.mark, "not valid YAML: " + error.msg,
                 "check indentation, colons, quotes and brackets here");
}

}  // namespace

std::variant<ConfigNode, YamlError> parseYaml(std::string_view text) {
  if (std::optional<YamlError> error = findControlByte(text)) return *error;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    TreeBuilder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    if (builder.empty())
      return YamlError{0, 0, "the file is empty", "start from one of the examples in conf/"};
    return builder.take();
  } catch (const YamlError& error) {
    return error;
  } catch (const YAML::Exception& error) {
    return syntaxError(text, error);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return YamlError{0, 0, std::string("not valid YAML: ") + error.what(),
                     "check indentation, quotes and brackets"};
  }
}

}  // namespace braid
