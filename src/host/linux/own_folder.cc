#include "host/linux/own_folder.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "host/linux/durable_file.h"
#include "host/unique_fd.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0750;  // StateDirectoryMode of systemd/braid@.service

bool isOursOrRoots(const struct stat& info) {
  return info.st_uid == 0 || info.st_uid == ::geteuid();
}

// What is wrong with one of the folders on the way to and including this one; empty: nothing.
std::string problemOfWay(const fs::path& parent) {
  fs::path at;
  for (const fs::path& name : parent) {
    at /= name;
    struct stat entry {
    }, info{};
    if (::lstat(at.c_str(), &entry) != 0 || ::stat(at.c_str(), &info) != 0)
      return at.string() + ": " + std::strerror(errno);
    if (!S_ISDIR(info.st_mode)) return at.string() + " is no folder";
    if (!isOursOrRoots(entry) || !isOursOrRoots(info)) return at.string() + " belongs to another user";
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0)
      return "others may write to " + at.string();
  }
  return {};
}

// Gives errno.
int give(int folder, const std::string& user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(1 << 16);
  if (::getpwnam_r(user.c_str(), &entry, room.data(), room.size(), &found); !found) return ENOENT;
  return ::fchown(folder, found->pw_uid, found->pw_gid) == 0 ? 0 : errno;
}

}  // namespace

std::string makeOwnFolder(const std::string& folder, const std::string& user) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  std::string what = "cannot make the folder " + folder + ": ";
  fs::path parent = fs::path(folder).parent_path();
  if (std::string problem = problemOfWay(parent); !problem.empty()) return what + problem;
  if (::mkdir(folder.c_str(), kMode) != 0) return what + std::strerror(errno);
  UniqueFd made(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  int error = made && ::fchmod(made.get(), kMode) == 0 ? 0 : errno;
  if (error == 0 && !user.empty()) error = give(made.get(), user);
  if (error == 0) return syncFolder(parent);
  ::rmdir(folder.c_str());
  return what + std::strerror(error);
}

}  // namespace braid
