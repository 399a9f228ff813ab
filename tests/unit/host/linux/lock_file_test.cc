#include "host/linux/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace braid::lock_file_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uid_t kSomebody = 4711;

struct LockFileTest : testing::Test {
  LockFileTest() {
    std::string name = (fs::temp_directory_path() / "braid-lock-XXXXXX").string();
    folder = mkdtemp(name.data());
    path = folder / "x.lock";
  }
  ~LockFileTest() override { fs::remove_all(folder); }
  std::string problem() const {
    try {
      LockFile lock(path, "wait");
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "";
  }
  struct stat info() const {
    struct stat out {};
    EXPECT_EQ(lstat(path.c_str(), &out), 0) << path;
    return out;
  }
  fs::path folder, path;
};

TEST_F(LockFileTest, OneHasItAtATimeAndNobodyWaits) {
  {
    LockFile lock(path, "wait");
    EXPECT_EQ(info().st_mode & 07777, 0600u);
    EXPECT_THAT(problem(), AllOf(StartsWith("lock " + path.string() + ": held by a process of "),
                                 HasSubstr("root"), EndsWith("; wait")));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(problem(), "");
}

TEST_F(LockFileTest, WhatAKilledProcessLeftIsTaken) {
  UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(problem(), "");
}

TEST_F(LockFileTest, ThatOfAnotherStays) {
  std::optional<LockFile> lock;
  lock.emplace(path, "wait");
  fs::remove(path);  // deleted by somebody who cleans up
  LockFile second(path, "wait");
  lock.reset();
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(LockFileTest, OthersSeeWhetherItIsHeld) {
  EXPECT_FALSE(LockFile::isHeld(path)) << "there is none";
  {
    LockFile lock(path, "wait");
    EXPECT_TRUE(LockFile::isHeld(path));
    EXPECT_TRUE(LockFile::isHeld(path)) << "looking does not take it";
  }
  UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(LockFile::isHeld(path)) << "a killed process left it";
  EXPECT_EQ(problem(), "");
}

TEST_F(LockFileTest, ALinkIsNotFollowed) {
  fs::create_symlink(folder / "elsewhere", path);
  EXPECT_THAT(problem(), EndsWith("; remove it"));
  EXPECT_FALSE(fs::exists(folder / "elsewhere"));
  EXPECT_TRUE(fs::is_symlink(path));
}

TEST_F(LockFileTest, WhatOthersMayOpenIsRefusedAndStaysAsItIs) {
  for (mode_t mode : {0604u, 0640u, 0620u}) {
    UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(fchmod(file.get(), mode), 0);
    EXPECT_THAT(problem(), HasSubstr("is no file that its owner alone may open; remove it"))
        << mode;
    EXPECT_EQ(info().st_mode & 07777, mode);
  }
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(problem(), HasSubstr("; remove it"));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THAT(problem(), HasSubstr("; remove it"));
}

TEST_F(LockFileTest, NamesAFolderThatIsMissing) {
  path = folder / "missing" / "x.lock";
  EXPECT_THAT(problem(), HasSubstr("No such file or directory; create the folder"));
}

// A daemon of that user must be able to replace a killed daemon of root.
TEST_F(LockFileTest, WhatRootMakesBelongsToTheFoldersOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(chown(folder.c_str(), kSomebody, static_cast<gid_t>(-1)), 0);
  {
    LockFile lock(path, "wait");
    EXPECT_EQ(info().st_uid, kSomebody);
    EXPECT_THAT(problem(), HasSubstr("held by a process of '4711' or root"));
  }
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(fchown(file.get(), kSomebody + 1, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(problem(), HasSubstr("; remove it")) << "somebody else's";
  EXPECT_EQ(info().st_uid, kSomebody + 1);
}

}  // namespace
}  // namespace braid::lock_file_test
