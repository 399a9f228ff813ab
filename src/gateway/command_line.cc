#include "gateway/command_line.h"

#include <algorithm>
#include <memory>
#include <ostream>
#include <sstream>
#include <string_view>

#include "base/nearest_word.h"
#include "gateway/config/units.h"

namespace braid {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kDescription = 30;  // column at which the library begins descriptions

// Breaks longer lines at blanks; a line of usage between options.
std::string wrapped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t indent = line.starts_with("  ") ? kDescription : 2;
    const char* const between = line.starts_with("usage") || line.starts_with("Usage") ? " [" : " ";
    for (size_t before = 0; before + line.size() > kColumns; before = indent) {
      const size_t end = line.rfind(between, kColumns - before);
      if (end == std::string_view::npos || end + before <= indent) break;  // a word of that length
      out += std::string(line.substr(0, end)) + "\n" + std::string(indent, ' ');
      line.remove_prefix(end + 1);
    }
    out += std::string(line) + "\n";
  }
  return out;
}

// "braidctl trace on"
std::string wordsOf(const CLI::App& app) {
  return (app.get_parent() ? wordsOf(*app.get_parent()) + " " : "") + app.get_name();
}

bool isFlag(const CLI::Option& option) {
  return option.get_expected_max() == 0;
}

std::vector<std::string_view> verbsOf(const CLI::App& app) {
  std::vector<std::string_view> out;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    out.push_back(verb->get_name());
  return out;
}

// "braidctl keygen [--dir FOLDER] [--json] NAME"
std::string usageOf(const CLI::App& app) {
  std::string options, words;
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr() || option == app.get_version_ptr()) continue;
    const bool must = option->get_required();
    const std::string what = option->get_positional() ? option->get_name(true)
                             : isFlag(*option)        ? option->get_name()
                                               : option->get_name() + " " + option->get_type_name();
    (option->get_positional() ? words : options) += must ? " " + what : " [" + what + "]";
  }
  const bool isRoot = !app.get_parent();
  for (std::string_view verb : verbsOf(app)) {
    if (isRoot) {
      words += " VERB ...";
      break;
    }
    words += (words.empty() ? " " : " | ") + std::string(verb);
  }
  return wordsOf(app) + options + words;
}

class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string) const override {
    return "Usage: " + usageOf(*app) + "\n";
  }
  std::string make_option(const CLI::Option* option, bool isPositional) const override {
    const std::string usual = option->get_default_str();
    std::ostringstream out;
    CLI::detail::format_help(
        out,
        make_option_name(option, isPositional) +
            (isPositional || isFlag(*option) ? "" : " " + option->get_type_name()) +
            (usual.empty() ? "" : " (" + usual + ")"),
        option->get_description(), kDescription);
    return out.str();
  }
};

// The options that the library's sentence names, in its order.
std::vector<const CLI::Option*> namedIn(const std::string& sentence, const CLI::App& app) {
  std::vector<std::pair<size_t, const CLI::Option*>> found;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const size_t at = (" " + sentence + " ").find(" " + name + " ");
    const size_t before = sentence.find(name + ":");
    if (!name.empty() && std::min(at, before) != std::string::npos)
      found.emplace_back(std::min(at, before), option);
  }
  std::sort(found.begin(), found.end());
  std::vector<const CLI::Option*> out;
  for (const auto& each : found) out.push_back(each.second);
  return out;
}

std::string orMeant(std::string_view text, const std::vector<std::string_view>& known) {
  const std::string_view meant = nearestWord(text, known);
  return meant.empty() ? "" : "; did you mean " + std::string(meant) + "?";
}

// A word that the library could not place.
std::string strangeWord(const CLI::App& app, const CLI::App& deepest, const std::string& word) {
  if (word.size() > 1 && word[0] == '-') {
    const std::string name = word.substr(0, word.find('='));
    if (&app != &deepest && deepest.get_option_no_throw(name))
      return name + " belongs behind " + wordsOf(deepest);
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
    return "there is no option " + name + orMeant(name, {names.begin(), names.end()});
  }
  if (const auto verbs = verbsOf(app); !verbs.empty() && &app == &deepest)
    return "there is no verb " + word + orMeant(word, verbs);
  return "'" + word + "' is one word too many";
}

// What is wrong with an option or argument, or with those that are missing.
std::string sentenceOf(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  const auto named = namedIn(text, app);
  auto is = [&](const char* name) { return error.get_name() == name; };
  if (named.empty()) return verbsOf(app).empty() ? "this is not understood" : "a verb is missing";
  const CLI::Option& option = *named[0];
  const std::string name = option.get_name(),
                    other = named.size() > 1 ? named[1]->get_name() : "another option";
  if (is("RequiredError"))
    return (option.get_positional() ? option.get_name(true) : name) + " is missing";
  if (is("RequiresError")) return name + " needs " + other + " beside it";
  if (is("ExcludesError")) return name + " and " + other + " do not go together";
  if (isFlag(option)) return name + " takes no value";
  if (is("ValidationError")) return name + " must be " + text.substr(text.find(": ") + 2);
  if (is("ConversionError"))
    return name + " cannot be '" + CLI::detail::join(option.results(), " ") + "'";
  return name + (option.count() > 1 ? " may be given only once" : " needs a value");
}

}  // namespace

Program::Program(const std::string& name, const std::string& version,
                 const std::string& description, const std::vector<std::string>& examples)
    : CLI::App(description, name) {
  set_help_flag("-h,--help", "Show this");
  set_version_flag("--version", version, "Show the version");
  formatter(std::make_shared<Help>());  // the verbs, which are added later, inherit it
  for (const std::string& line : examples)
    examples_ += (examples_.empty() ? "Examples:" : "") + ("\n  " + line);
}

std::optional<int> Program::read(int argc, const char* const* argv, std::ostream& out,
                                 std::ostream& err) {
  footer(examples_);  // only now: verbs would inherit it
  try {
    parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForVersion& version) {
    out << version.what() << '\n';
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::string text = help();
    while (text.ends_with("\n\n")) text.pop_back();
    out << wrapped(text);
    return 0;
  } catch (const CLI::ParseError& error) {
    const CLI::App *app = this, *deepest = this;
    while (!deepest->get_subcommands().empty()) {
      deepest = deepest->get_subcommands().front();
      if (app->remaining().empty()) app = deepest;
    }
    auto left = app->remaining();
    std::erase(left, "--");
    std::string told =
        left.empty() ? sentenceOf(error, *app) : strangeWord(*app, *deepest, left[0]);
    if (!verbsOf(*app).empty()) {
      told += (told.ends_with('?') ? " '" : "; '") + wordsOf(*app) + " --help' lists all";
    } else {
      told += "\nusage: " + usageOf(*app);
    }
    err << wrapped(wordsOf(*app) + ": " + told);
    return kExitUsage;
  }
}

CLI::Validator wholeNumber(uint64_t low, uint64_t high) {
  return {[low, high](const std::string& text) -> std::string {
            const auto number = parseNumber(text);
            if (number && *number >= low && *number <= high) return "";
            return "a number from " + std::to_string(low) + " to " + std::to_string(high) +
                   ", not '" + text + "'";
          },
          ""};
}

CLI::Validator oneOf(const std::vector<std::string>& words) {
  return {
      [words](const std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        std::string wanted;
        for (const std::string& word : words)
          wanted += (&word == &words.front() ? "" : &word == &words.back() ? " or " : ", ") + word;
        return wanted + ", not '" + text + "'";
      },
      ""};
}

}  // namespace braid
