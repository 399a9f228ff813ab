#include "gateway/config/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "host/linux/files.h"
#include "host/system.h"
#include "tests/temporary_folder.h"

namespace braid::state_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct StateFile : testing::Test {
  StateFile() { std::ofstream(victim) << "the host's own"; }
  TemporaryFolder folder;
  std::string path = folder.path() / "state.json", victim = folder.path() / "victim";
};

TEST_F(StateFile, IsReplacedWithItsMode) {
  EXPECT_EQ(readStateFile(path, 100), "");
  EXPECT_EQ(writeStateFile(path, "old", 0640), "");
  EXPECT_EQ(writeStateFile(path, "new", 0600), "");
  EXPECT_EQ(readStateFile(path, 100), "new");
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(StateFile, ALinkThatSomebodyLaidLeadsNowhere) {
  fs::create_symlink(victim, path + ".new");
  fs::create_symlink(victim, path);
  EXPECT_THROW(readStateFile(path, 100), SystemError);
  EXPECT_EQ(writeStateFile(path, "ours", 0600), "");
  EXPECT_EQ(textOfFile(victim), "the host's own");
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(readStateFile(path, 100), "ours");
}

TEST_F(StateFile, AnAttemptThatACrashLeftIsInNobodysWay) {
  std::ofstream(path + ".new") << std::string(5000, 'x');
  EXPECT_EQ(writeStateFile(path, "ours", 0600), "");
  EXPECT_EQ(readStateFile(path, 100), "ours");
  EXPECT_FALSE(fs::exists(path + ".new"));
}

TEST_F(StateFile, WhatCannotBeWrittenIsSaid) {
  EXPECT_THAT(writeStateFile(folder.path() / "missing" / "state.json", "x", 0600),
              HasSubstr("cannot write"));
}

}  // namespace
}  // namespace braid::state_file_test
