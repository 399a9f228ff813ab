#include "gateway/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace braid::command_line_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// What a program of every kind of option says to these words.
struct Answer {
  std::optional<int> code;
  std::string out, err;
};

Answer answer(std::vector<std::string> words) {
  Program app("tool", "tool 1.2", "Does it.", {"tool dig 3"});
  std::string file, first, second, level;
  int depth = 0;
  double exact = 0;
  bool fast = false;
  app.require_subcommand(1);
  CLI::App* dig = app.add_subcommand("dig", "Dig a hole")->group("Work");
  dig->add_option("FILE", file, "Where")->required();
  dig->add_option("--depth", depth, std::string(60, 'x') + " 123456 yyy zzz")
      ->type_name("METRES")
      ->check(wholeNumber(1, 60));
  dig->add_option("--exact", exact, "How exactly")->type_name("N");
  dig->add_option("--level", level, "How loud")->check(oneOf({"low", "high"}));
  dig->add_flag("--fast", fast, "Hurry");
  CLI::Option* one = dig->add_option("--one", first, "This");
  CLI::Option* two = dig->add_option("--two", second, "Or that")->excludes(one);
  dig->add_option("--three", second, "With it")->needs(two);
  CLI::App* fill = app.add_subcommand("fill", "Fill it")->group("Work");
  fill->require_subcommand(1);
  fill->add_subcommand("sand", "With sand");
  std::vector<const char*> argv{"tool"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  std::optional<int> code = app.read(static_cast<int>(argv.size()), argv.data(), out, err);
  return {code, out.str(), err.str()};
}

size_t widest(const std::string& text) {
  size_t most = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
  return most;
}

TEST(CommandLine, AMistakeNamesTheWordAndTheRemedy) {
  const std::string usage =
      "\nusage: tool dig [--depth METRES] [--exact N] [--level TEXT] [--fast] [--one TEXT] "
      "[--two TEXT]\n  [--three TEXT] FILE\n";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "tool: a verb is missing; 'tool --help' lists all\n"},
      {{"digg"}, "tool: there is no verb digg; did you mean dig? 'tool --help' lists all\n"},
      {{"dance"}, "tool: there is no verb dance; 'tool --help' lists all\n"},
      {{"--verbos"}, "tool: there is no option --verbos; 'tool --help' lists all\n"},
      {{"--fast", "dig", "f"}, "tool: --fast belongs behind tool dig; 'tool --help' lists all\n"},
      {{"fill"}, "tool fill: a verb is missing; 'tool fill --help' lists all\n"},
      {{"fill", "snad"},
       "tool fill: there is no verb snad; did you mean sand? 'tool fill --help' lists all\n"},
      {{"dig"}, "tool dig: FILE is missing" + usage},
      {{"dig", "f", "g"}, "tool dig: 'g' is one word too many" + usage},
      {{"dig", "f", "fill"}, "tool dig: 'fill' is one word too many" + usage},
      {{"dig", "--fats"}, "tool dig: there is no option --fats; did you mean --fast?" + usage},
      {{"dig", "f", "-q=1"}, "tool dig: there is no option -q" + usage},
      {{"dig", "f", "--depth"}, "tool dig: --depth needs a value" + usage},
      {{"dig", "f", "--depth", "1", "--depth", "2"},
       "tool dig: --depth may be given only once" + usage},
      {{"dig", "f", "--depth", "61"},
       "tool dig: --depth must be a number from 1 to 60, not '61'" + usage},
      {{"dig", "f", "--depth=x: y"},
       "tool dig: --depth must be a number from 1 to 60, not 'x: y'" + usage},
      {{"dig", "f", "--level", "mid"}, "tool dig: --level must be low or high, not 'mid'" + usage},
      {{"dig", "f", "--exact", "very"}, "tool dig: --exact cannot be 'very'" + usage},
      {{"dig", "f", "--fast=maybe"}, "tool dig: --fast takes no value" + usage},
      {{"dig", "f", "--one", "a", "--two", "b"},
       "tool dig: --one and --two do not go together" + usage},
      {{"dig", "f", "--three", "a"}, "tool dig: --three needs --two beside it" + usage},
  };
  for (const auto& [words, told] : cases) {
    const Answer said = answer(words);
    EXPECT_EQ(said.code, kExitUsage);
    EXPECT_EQ(said.err, told);
    EXPECT_EQ(said.out, "");
    EXPECT_LE(widest(said.err), 100u);
  }
}

TEST(CommandLine, HelpIsInOurWordsAndHasNoLongLine) {
  const Answer all = answer({"--help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, HasSubstr("Usage: tool VERB ...\n"));
  EXPECT_THAT(all.out, HasSubstr("\nWork:\n  dig "));
  EXPECT_TRUE(all.out.ends_with("\nExamples:\n  tool dig 3\n")) << all.out;
  const Answer dig = answer({"dig", "-h"});
  EXPECT_EQ(dig.code, 0);
  EXPECT_THAT(dig.out, HasSubstr("--depth METRES"));
  EXPECT_THAT(dig.out, Not(HasSubstr("Examples")));
  for (const std::string& text : {all.out, dig.out})
    for (const char* of : {"OPTIONS", "SUBCOMMAND", "REQUIRED", "this help message", "Needs"})
      EXPECT_THAT(text, Not(HasSubstr(of)));
  EXPECT_LE(std::max(widest(all.out), widest(dig.out)), 100u);
  EXPECT_THAT(dig.out, HasSubstr("\n" + std::string(30, ' ') + "yyy zzz\n"))
      << "wrapped where it began";
}

TEST(CommandLine, VersionAndGoodWords) {
  const Answer version = answer({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "tool 1.2\n");
  EXPECT_EQ(answer({"dig", "f", "--depth", "60", "--level", "low", "--fast"}).code, std::nullopt);
}

}  // namespace
}  // namespace braid::command_line_test
