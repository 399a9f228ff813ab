#include "host/linux/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string>* synced = nullptr;  // records the synced files while it is set
int refusedWith = 0;                         // the error of each sync

}  // namespace

// Replaces the C library's function.
extern "C" int fsync(int file) {
  if (!synced) return static_cast<int>(::syscall(SYS_fsync, file));
  if (refusedWith != 0) return errno = refusedWith, -1;
  synced->push_back(
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)).filename().string());
  return 0;
}

namespace braid::durable_file_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct DurableFileTest : testing::Test {
  DurableFileTest() {
    std::string pattern = (fs::temp_directory_path() / "durable-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("no folder");
    folder = pattern;
    synced = &list;
    refusedWith = 0;
  }
  ~DurableFileTest() override {
    synced = nullptr;
    fs::remove_all(folder);
  }
  std::string text() const {
    std::ifstream in(path());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string path() const { return (folder / "book").string(); }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  fs::path folder;
  std::vector<std::string> list;
};

TEST_F(DurableFileTest, ItsContentsAreReadWholeAndAMissingOneIsNone) {
  EXPECT_EQ(textOfFile(path()), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(textOfFile(folder.string()), std::nullopt) << "a folder has none";
  EXPECT_EQ(errno, EISDIR);
  for (size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{10'000}}) {
    std::string whole(size, 'x');
    whole += size > 0 ? std::string("\0\n", 2) : "";
    std::ofstream(path()) << whole;
    EXPECT_EQ(textOfFile(path()), whole);
  }
}

TEST_F(DurableFileTest, TheBytesAndThenTheNameAreOnTheDisk) {
  EXPECT_EQ(writeDurableFile(path(), "one", 0600), "");
  EXPECT_THAT(list, ElementsAre(".book.new", folder.filename().string()));
  EXPECT_EQ(text(), "one");
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(DurableFileTest, WhatCannotBeWrittenLeavesTheFileAsItWas) {
  ASSERT_EQ(writeDurableFile(path(), "one", 0600), "");
  refusedWith = ENOSPC;
  EXPECT_THAT(writeDurableFile(path(), "two", 0600), HasSubstr("book: No space left"));
  EXPECT_EQ(text(), "one");
  EXPECT_EQ(files(), 1) << "and nothing beside it";
}

TEST_F(DurableFileTest, WhatACrashLeftIsOverwritten) {
  std::ofstream(folder / ".book.new") << "a longer text than that";
  EXPECT_EQ(writeDurableFile(path(), "one", 0600), "");
  EXPECT_EQ(text(), "one");
  EXPECT_EQ(files(), 1);
}

TEST_F(DurableFileTest, ALinkInItsPlaceIsReplacedAndNotFollowed) {
  std::ofstream(folder / "other") << "other";
  fs::create_symlink("other", folder / ".book.new");
  EXPECT_NE(writeDurableFile(path(), "one", 0600), "");
  fs::remove(folder / ".book.new");
  fs::create_symlink("other", path());
  EXPECT_EQ(writeDurableFile(path(), "one", 0600), "");
  EXPECT_FALSE(fs::is_symlink(path()));
  std::ifstream in(folder / "other");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "other");
}

TEST_F(DurableFileTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(writeDurableFile((folder / "no" / "book").string(), "one", 0600),
              HasSubstr("No such file"));
  EXPECT_THAT(syncFolder((folder / "no").string()), HasSubstr("No such file"));
}

}  // namespace
}  // namespace braid::durable_file_test
