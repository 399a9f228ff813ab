#include "host/linux/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace braid::own_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uid_t kAnother = 4711;

struct OwnFolderTest : testing::Test {
  OwnFolderTest() {
    std::string name = (fs::temp_directory_path() / "braid-folder-XXXXXX").string();
    root = mkdtemp(name.data());
    folder = root / "state";
  }
  ~OwnFolderTest() override { fs::remove_all(root); }
  static struct stat info(const fs::path& path) {
    struct stat out {};
    EXPECT_EQ(lstat(path.c_str(), &out), 0) << path;
    return out;
  }
  fs::path root, folder;
};

TEST_F(OwnFolderTest, IsMadeAsSystemdMakesIt) {
  for (mode_t mask : {0000u, 0077u}) {
    mode_t before = umask(mask);
    EXPECT_EQ(makeOwnFolder(folder), "");
    umask(before);
    EXPECT_EQ(info(folder).st_mode & 07777, 0750u);
    EXPECT_EQ(info(folder).st_uid, geteuid());
    EXPECT_EQ(info(folder).st_gid, getegid());
    fs::remove(folder);
  }
}

TEST_F(OwnFolderTest, WhatIsThereStaysAsItIs) {
  fs::create_directory(root / "real");
  ASSERT_EQ(chmod((root / "real").c_str(), 0711), 0);
  fs::create_directory_symlink(root / "real", folder);
  EXPECT_EQ(makeOwnFolder(folder), "");
  EXPECT_EQ(info(root / "real").st_mode & 07777, 0711u);
}

TEST_F(OwnFolderTest, SaysWhyItCannotBeMade) {
  std::string what = "cannot make the folder " + folder.string() + ": ";
  EXPECT_EQ(makeOwnFolder(folder / "below"), "cannot make the folder " +
                                                 (folder / "below").string() + ": " +
                                                 folder.string() + ": No such file or directory");
  fs::create_symlink("nowhere", folder);
  EXPECT_EQ(makeOwnFolder(folder), what + "File exists") << "a link is not followed";
  EXPECT_FALSE(fs::exists(root / "nowhere"));
  fs::remove(folder);
  std::ofstream(folder) << "precious";
  EXPECT_EQ(makeOwnFolder(folder), what + "File exists");
  EXPECT_EQ(makeOwnFolder(folder / "below"), "cannot make the folder " +
                                                 (folder / "below").string() + ": " +
                                                 folder.string() + " is no folder");
}

TEST_F(OwnFolderTest, NotWhereOthersMayChangeTheWay) {
  for (mode_t mode : {0770u, 0707u}) {
    ASSERT_EQ(chmod(root.c_str(), mode), 0);
    EXPECT_THAT(makeOwnFolder(folder), HasSubstr(": others may write to " + root.string()));
    EXPECT_FALSE(fs::exists(folder));
  }
  ASSERT_EQ(chmod(root.c_str(), 01777), 0);
  EXPECT_EQ(makeOwnFolder(folder), "") << "as /tmp is";
}

TEST_F(OwnFolderTest, NotBelowAnotherUsersFolderOrLink) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directory(root / "real");
  fs::create_directory_symlink(root / "real", root / "link");
  EXPECT_EQ(makeOwnFolder(root / "link" / "state"), "") << "as /var of OpenWrt is";
  fs::remove(root / "real" / "state");
  ASSERT_EQ(lchown((root / "link").c_str(), kAnother, kAnother), 0);
  EXPECT_THAT(makeOwnFolder(root / "link" / "state"), HasSubstr("link belongs to another user"));
  ASSERT_EQ(chown(root.c_str(), kAnother, kAnother), 0);
  EXPECT_THAT(makeOwnFolder(folder), HasSubstr(root.string() + " belongs to another user"));
}

TEST_F(OwnFolderTest, IsGivenToAUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(makeOwnFolder(folder, "nobody"), "");
  EXPECT_NE(info(folder).st_uid, 0u);
  EXPECT_NE(info(folder).st_gid, 0u);
  fs::remove(folder);
  EXPECT_THAT(makeOwnFolder(folder, "no-such-user"), StartsWith("cannot make the folder "));
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace braid::own_folder_test
