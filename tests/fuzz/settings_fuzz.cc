// The table of settings: each row gets any YAML value, in a configuration that is right otherwise.
// Nothing crashes; every mistake has its file, line, key and remedy, in printable words; and what
// is accepted is written as the table shows it, and read back to the same value.
//
// Input: a byte that chooses the configuration, then texts that end at a 0 byte: "PATH=VALUE". A
// path that is no row of the table stands for one all the same.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/packet.h"
#include "gateway/config/settings.h"
#include "tests/fuzz/bounded.h"
#include "tests/fuzz/check.h"

namespace {

using namespace braid;
using fuzz::require;

constexpr const char* kFile = "/etc/braid/fuzz.yaml";
constexpr size_t kMostSettings = 64;
constexpr size_t kBufferSize = 2048;

// Every list of mappings has an item, because a row of its section needs one.
constexpr std::string_view kTun = R"(
identity: {key: fuzz.key, certificate: fuzz.crt}
device: {addresses: [10.99.0.2/30], routes: [10.1.0.0/16]}
uplinks: [{name: wifi, interface: wlan0, metered: {cap: 10GB}}, {name: lte, interface: wwan0}]
listen: ["0.0.0.0:4433"]
peers:
  - name: hub
    pin: "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    endpoints: ["192.0.2.1:4433"]
    prefixes: [10.1.0.0/16, 10.99.0.1/32]
recovery: {classes: [{protocol: udp, ports: 5060, policy: none}]}
tunnel: {ack-shim: {exclude: [{ports: 5060}]}}
streams: {match: [{ports: 443}], exclude: [{ports: 8443}], accept: [{ports: 443}]}
dns: {servers: [10.1.0.53]}
forwards: [{port: 8080, to: 10.1.0.5}]
)";
constexpr std::string_view kTap = R"(
identity: {key: fuzz.key, certificate: fuzz.crt}
device: {mode: tap, bridge: br0}
uplinks: [{name: wifi, mac: "02:00:5e:00:53:01"}]
peers:
  - {name: hub, pin: "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", endpoints: ["hub.example.net:4433"]}
recovery: {classes: [{dscp: ef, policy: redundant}]}
)";

void write(const ConfigNode& node, std::string& out);

void write(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append("\\").append(1, c);
    } else if (byte < 0x20 || byte == 0x7f) {
      out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    } else {
      out += c;
    }
  }
  out += '"';
}

void write(const ConfigNode& node, std::string& out) {
  const bool isMap = node.kind == ConfigNode::Kind::kMap;
  if (node.kind == ConfigNode::Kind::kNull) {
    out += '~';
  } else if (node.kind == ConfigNode::Kind::kScalar) {
    write(node.text, out);
  } else {
    out += isMap ? '{' : '[';
    for (size_t i = 0; i < node.items.size(); ++i) {
      if (i > 0) out += ", ";
      if (isMap) write(node.keys[i].text, out), out += ": ";
      write(node.items[i], out);
    }
    out += isMap ? '}' : ']';
  }
}

/// A key of the top in each line.
std::string documentOf(const ConfigNode& tree) {
  std::string out;
  for (size_t i = 0; i < tree.items.size(); ++i) {
    write(tree.keys[i].text, out);
    out += ": ";
    write(tree.items[i], out);
    out += '\n';
  }
  return out;
}

ConfigNode& childOf(ConfigNode& map, std::string_view key) {
  if (map.kind != ConfigNode::Kind::kMap) map = ConfigNode{.kind = ConfigNode::Kind::kMap};
  auto found = std::ranges::find(map.keys, key, &ConfigNode::Key::text);
  if (found != map.keys.end()) return map.items[static_cast<size_t>(found - map.keys.begin())];
  map.keys.push_back({std::string(key)});
  return map.items.emplace_back();
}

bool isList(std::string_view section) {
  return std::ranges::any_of(settings(), [&](const Setting& each) {
    return each.path() == section && each.value.values.starts_with("list");
  });
}

/// The place of a row's value; of a list that of its first item.
ConfigNode& placeOf(ConfigNode& tree, const Setting& row) {
  ConfigNode* at = &tree;
  const std::string_view section = row.section;
  for (size_t begin = 0, end = 0; !section.empty() && end != section.npos; begin = end + 1) {
    end = section.find('.', begin);
    at = &childOf(*at, section.substr(begin, end - begin));
    if (!isList(section.substr(0, end))) continue;
    if (at->kind != ConfigNode::Kind::kSequence || at->items.empty())
      *at = ConfigNode{.kind = ConfigNode::Kind::kSequence, .items = {ConfigNode{}}};
    at = &at->items.front();
  }
  return childOf(*at, row.key);
}

ConfigNode scalar(std::string text) {
  return ConfigNode{.kind = ConfigNode::Kind::kScalar, .text = std::move(text)};
}

const Setting& rowOf(std::string_view path) {
  std::span<const Setting> rows = settings();
  auto found = std::ranges::find_if(rows, [&](const Setting& each) { return each.path() == path; });
  if (found != rows.end()) return *found;
  size_t number = 0;
  for (char c : path) number = number * 31 + static_cast<unsigned char>(c);
  return rows[number % rows.size()];
}

ConfigResult read(const std::string& text) {
  LoadOptions options;
  options.checkIdentity = false;  // reads no other files
  return parseConfig(text, kFile, options, {});
}

/// `isGone`: they may be about a key that is not in the file any more.
void checkErrors(const ConfigErrors& errors, const std::string& text, bool isGone = false) {
  const auto lines = static_cast<unsigned>(std::ranges::count(text, '\n'));
  const bool isYaml = std::holds_alternative<ConfigNode>(parseYaml(text));
  for (const ConfigError& error : errors) {
    require(error.file == kFile, "a mistake in another file");
    require((error.line >= 1 || isGone) && error.line <= lines, "a mistake in no line");
    require(!error.key.empty() || !isYaml, "a mistake at no key");
    require(!error.problem.empty() && !error.remedy.empty(), "a mistake without words");
    const std::string words = error.toString();
    for (size_t i = 0; i < words.size(); ++i) {
      const auto byte = static_cast<unsigned char>(words[i]);
      require(byte >= 0x20 && byte != 0x7f, "a control character in a message");
      require(byte != 0xc2 || static_cast<unsigned char>(words[i + 1]) >= 0xa0,
              "a C1 control character in a message");
    }
  }
}

void checkSame(const Config& before, const Config& after) {
  for (const Setting& row : settings())
    if (row.value.show && row.value.show(before) != row.value.show(after))
      require(false, (row.path() + " is read back as another value").c_str());
}

/// Writes the values of these rows as the table shows them. One that cannot be shown stays as it
/// is.
void checkReadBack(const Config& config, ConfigNode tree, const std::vector<const Setting*>& rows) {
  const std::string same = documentOf(tree);
  const ConfigResult again = read(same);
  for (const Setting* row : rows)
    if (ConfigNode copy = tree;  // a later setting may have taken the place away
        row->value.show && placeOf(copy, *row).kind == ConfigNode::Kind::kScalar)
      placeOf(tree, *row) = scalar(row->value.show(config));
  const ConfigResult shown = read(documentOf(tree));
  for (const ConfigResult* result : {&again, &shown}) {
    if (const auto* errors = std::get_if<ConfigErrors>(result))
      require(false, ("what was accepted is refused: " + errors->front().toString()).c_str());
    checkSame(config, std::get<Config>(*result));
  }
  require(needsRestart(config, std::get<Config>(shown), tree, kBufferSize).size() ==
              needsRestart(config, config, tree, kBufferSize).size(),
          "what is read back needs a restart");
}

}  // namespace

extern "C" void fuzzInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool isTap = !input.empty() && input.front() % 2 == 1;
  input.remove_prefix(std::min<size_t>(input.size(), 1));
  static const ConfigNode kTrees[] = {std::get<ConfigNode>(parseYaml(kTun)),
                                      std::get<ConfigNode>(parseYaml(kTap))};
  static const ConfigResult kConfigs[] = {read(documentOf(kTrees[0])), read(documentOf(kTrees[1]))};
  require(std::holds_alternative<Config>(kConfigs[isTap]), "the configuration itself is refused");
  ConfigNode tree = kTrees[isTap];
  std::vector<const Setting*> rows;
  while (!input.empty() && rows.size() < kMostSettings) {
    std::string_view each = input.substr(0, input.find('\0'));
    input.remove_prefix(std::min(input.size(), each.size() + 1));
    const size_t equals = std::min(each.find('='), each.size());
    const Setting& row = rowOf(each.substr(0, equals));
    each.remove_prefix(std::min(each.size(), equals + 1));
    auto value = parseYaml(each);
    auto* node = std::get_if<ConfigNode>(&value);
    placeOf(tree, row) = node ? std::move(*node) : scalar(std::string(each));
    rows.push_back(&row);
  }
  const std::string text = documentOf(tree);
  const ConfigResult result = read(text);
  if (const auto* errors = std::get_if<ConfigErrors>(&result)) {
    require(!errors->empty(), "refused without a reason");
    return checkErrors(*errors, text);
  }
  const auto& config = std::get<Config>(result);
  checkErrors(config.warnings, text);
  const auto& before = std::get<Config>(kConfigs[isTap]);
  checkErrors(needsRestart(before, config, tree, kBufferSize), text, true);
  checkReadBack(config, tree, rows);
}
