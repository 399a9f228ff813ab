// Changes to files and by programs, and what takes them back.

#include "ctl/firewall/firewall_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tests/temporary_folder.h"

namespace braid::firewall_steps_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

struct FirewallStepsTest : testing::Test {
  std::string path(const std::string& name) const { return root.file(name); }
  std::string text(const std::string& name) const {
    std::ifstream in(path(name));
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  void write(const std::string& name, const std::string& content) const {
    root.write(name, content);
  }
  // Makes the file `made` and removes it.
  FirewallStep touch(const std::string& made) const {
    FirewallStep step;
    step.run = {"touch", path(made)};
    step.undo = {"rm", path(made)};
    return step;
  }
  FirewallStep lines(const std::string& added) const {
    FirewallStep step;
    step.file = path("before.rules");
    step.text = added;
    step.before = "-A input";
    return step;
  }

  TemporaryFolder root;
  nlohmann::json record = nlohmann::json::array();
  KeepRecord keep = [](const nlohmann::json&) {};
};

TEST_F(FirewallStepsTest, ProgramsAreRunAndTakenBack) {
  makeChanges({touch("a"), touch("b")}, "braid edge", record, keep);
  EXPECT_TRUE(fs::exists(path("a")) && fs::exists(path("b")));
  record = nlohmann::json::parse(record.dump());
  fs::remove(path("a"));
  EXPECT_THAT(takeChangesBack(record), IsEmpty()) << "one is gone already";
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(FirewallStepsTest, AChangeIsRecordedBeforeItIsMade) {
  size_t calls = 0;
  keep = [&](const nlohmann::json& now) {
    calls += 1;
    EXPECT_EQ(now.size(), calls);
    EXPECT_EQ(now.back()["undo"][1], path(calls == 1 ? "a" : "b"));
    EXPECT_FALSE(fs::exists(path(calls == 1 ? "a" : "b")));
  };
  makeChanges({touch("a"), touch("b")}, "braid edge", record, keep);
  EXPECT_EQ(calls, 2u);
}

TEST_F(FirewallStepsTest, WhatCannotBeRecordedIsNotMade) {
  keep = [&](const nlohmann::json& now) {
    if (now.size() == 2) throw std::runtime_error("no space left");
  };
  EXPECT_THAT(
      [&] {
        makeChanges({touch("a"), touch("b")}, "braid edge", record, keep);
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("no space left")));
  EXPECT_FALSE(fs::exists(path("b")));
  EXPECT_EQ(record.size(), 1u);
  EXPECT_THAT(takeChangesBack(record), IsEmpty());
  EXPECT_FALSE(fs::exists(path("a")));
}

TEST_F(FirewallStepsTest, WhatCannotBeTakenBackStaysInTheRecord) {
  FirewallStep locked = touch("locked"), ended = touch("b");
  locked.undo = {"sh", "-c",
                 "test -e " + path("key") + " || { echo is not running >&2; exit 252; }"};
  ended.finish = {"sh", "-c", "echo reloaded >> " + path("log")};
  makeChanges({touch("a"), locked, ended}, "braid edge", record, keep);
  EXPECT_THAT(takeChangesBack(record), ElementsAre(HasSubstr("is not running")));
  EXPECT_FALSE(fs::exists(path("a")) || fs::exists(path("b")));
  EXPECT_EQ(record.size(), 2u) << "the one, and the end of all: " << record;
  write("key", "");
  EXPECT_THAT(takeChangesBack(record), IsEmpty());
  EXPECT_THAT(record, IsEmpty());
  EXPECT_EQ(text("log"), "reloaded\nreloaded\nreloaded\n");
}

TEST_F(FirewallStepsTest, WhatIsGoneCountsAsTakenBack) {
  for (const char* answer :
       {"Could not delete non-existent rule",
        "iptables: Bad rule (does a matching rule exist in that chain?).",
        "iptables: No chain/target/match by that name.", "Error: INVALID_ZONE: b-braid0",
        "Error: No such file or directory; did you mean table"}) {
    FirewallStep step = touch("a");
    step.undo = {"sh", "-c", "echo \"$0\" >&2; exit 1", answer};
    makeChanges({step}, "braid edge", record, keep);
    EXPECT_THAT(takeChangesBack(record), IsEmpty()) << answer;
    EXPECT_THAT(record, IsEmpty()) << answer;
  }
  FirewallStep step = touch("a");
  step.undo = {"/no/such/program"};
  makeChanges({step}, "braid edge", record, keep);
  EXPECT_THAT(takeChangesBack(record), IsEmpty()) << "the program is not installed any more";
}

TEST_F(FirewallStepsTest, WhatASignalEndedIsNotTakenForGone) {
  FirewallStep ended = touch("a");
  ended.undo = {"sh", "-c", "test -e " + path("key") + " || kill -KILL $$"};
  ended.finish = {"sh", "-c", "test -e " + path("key") + " || kill -KILL $$"};
  FirewallStep begun;
  begun.run = {"sh", "-c", "touch " + path("b") + "; kill -KILL $$"};
  begun.undo = {"rm", path("b")};
  write("key", "");
  makeChanges({ended}, "braid edge", record, keep);
  EXPECT_THAT([&] { makeChanges({begun}, "braid edge", record, keep); },
              ThrowsMessage<std::runtime_error>(HasSubstr("was ended by signal 9")));
  fs::remove(path("key"));
  EXPECT_THAT(takeChangesBack(record),
              ElementsAre(HasSubstr("was ended by signal 9"), HasSubstr("was ended by signal 9")));
  EXPECT_FALSE(fs::exists(path("b"))) << "it had made that before it was ended";
  EXPECT_EQ(record.size(), 2u) << "the one, and the end of all: " << record;
  write("key", "");
  EXPECT_THAT(takeChangesBack(record), IsEmpty());
  EXPECT_THAT(record, IsEmpty());
}

TEST_F(FirewallStepsTest, OneThatFailsIsNotInTheRecord) {
  FirewallStep bad;
  bad.run = {"sh", "-c", "echo no such chain >&2; exit 3"};
  EXPECT_THAT(
      [&] {
        makeChanges({touch("a"), bad}, "braid edge", record, keep);
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("no such chain")));
  EXPECT_EQ(record.size(), 1u);
  EXPECT_THAT(takeChangesBack(record), IsEmpty());
  EXPECT_FALSE(fs::exists(path("a")));
  bad.run = {"/no/such/program"};
  EXPECT_THAT([&] { makeChanges({bad}, "braid edge", record, keep); },
              ThrowsMessage<std::runtime_error>(HasSubstr("is it installed?")));
}

TEST_F(FirewallStepsTest, LinesStandBeforeTheFirstOfTheirKind) {
  const std::string whole = "*filter\n:input - [0:0]\n-A input one\n-A input two\nCOMMIT\n";
  write("before.rules", whole);
  ASSERT_EQ(::chmod(path("before.rules").c_str(), 0640), 0);
  makeChanges({lines("-A input ours\n")}, "braid edge", record, keep);
  EXPECT_EQ(text("before.rules"),
            "*filter\n:input - [0:0]\n# begin of braid edge\n-A input ours\n# end of braid edge\n"
            "-A input one\n-A input two\nCOMMIT\n");
  struct stat info {};
  ASSERT_EQ(::stat(path("before.rules").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0640u);
  nlohmann::json other = nlohmann::json::array();
  makeChanges({lines("-A input theirs\n")}, "braid hub", other, keep);
  makeChanges({lines("-A input anew\n")}, "braid edge", record, keep);
  EXPECT_THAT(text("before.rules"), testing::Not(HasSubstr("ours"))) << "they take their place";
  EXPECT_THAT(takeChangesBack(record), IsEmpty());
  EXPECT_THAT(text("before.rules"), HasSubstr("theirs")) << "those of another gateway stay";
  EXPECT_THAT(takeChangesBack(other), IsEmpty());
  EXPECT_EQ(text("before.rules"), whole);
}

TEST_F(FirewallStepsTest, AFileWithoutSuchALineIsLeftAsItIs) {
  write("before.rules", "*filter\nCOMMIT\n");
  EXPECT_THAT([&] { makeChanges({lines("-A input ours\n")}, "braid edge", record, keep); },
              ThrowsMessage<std::runtime_error>(HasSubstr("no line that begins with '-A input'")));
  EXPECT_EQ(text("before.rules"), "*filter\nCOMMIT\n");
}

TEST_F(FirewallStepsTest, AFileOfOurOwnGoesWithItsFolder) {
  FirewallStep step;
  step.file = path("hooks/network.d/braid-edge");
  step.text = "#!/bin/sh\n";
  step.isProgram = true;
  makeChanges({step}, "braid edge", record, keep);
  struct stat info {};
  ASSERT_EQ(::stat(step.file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0755u);
  EXPECT_THAT(takeChangesBack(record), IsEmpty());
  EXPECT_FALSE(fs::exists(path("hooks/network.d")));
}

TEST_F(FirewallStepsTest, TheEndIsRunOnceForAllAndAgainWhenTheyAreTakenBack) {
  FirewallStep one = touch("a"), two = touch("b");
  one.finish = two.finish = {"sh", "-c", "echo reloaded >> " + path("log")};
  makeChanges({one, two}, "braid edge", record, keep);
  EXPECT_EQ(text("log"), "reloaded\n");
  EXPECT_THAT(takeChangesBack(record), IsEmpty());
  EXPECT_EQ(text("log"), "reloaded\nreloaded\n");
}

TEST_F(FirewallStepsTest, ARecordThatSomebodyElseWroteDoesNoHarm) {
  for (const char* bad : {"7", "{}", "[1]", "[{\"undo\": 7}]", "[{\"undo\": []}]",
                          "[{\"file\": 3, \"lines\": {}}]", "[{\"finish\": [1, 2]}]"}) {
    record = nlohmann::json::parse(bad);
    EXPECT_THAT(takeChangesBack(record), IsEmpty()) << bad;
  }
}

TEST(ShellText, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shellText({"ufw", "comment", "it's", ""}), "ufw comment 'it'\\''s' ''");
}

}  // namespace
}  // namespace braid::firewall_steps_test
