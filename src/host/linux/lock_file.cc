#include "host/linux/lock_file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

namespace braid {

namespace {

// Each try finds that another process ended meanwhile, and removed its file.
constexpr int kOpenTries = 16;
constexpr int kHow = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

std::string holders(uid_t owner) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(1 << 16);
  ::getpwuid_r(owner, &entry, room.data(), room.size(), &found);
  std::string name = found ? found->pw_name : std::to_string(owner);
  return owner == 0 ? "root" : "'" + name + "' or root";
}

uid_t ownerOfFolder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path();
  struct stat info {};
  return ::stat(folder.empty() ? "." : folder.c_str(), &info) == 0 ? info.st_uid : ::geteuid();
}

// A new file alone changes its owner: what lies there may be another name of something else. Without
// CAP_CHOWN it stays root's.
UniqueFd make(const std::string& path) {
  UniqueFd file(::open(path.c_str(), kHow | O_CREAT | O_EXCL, 0600));
  if (!file || ::geteuid() != 0) return file;
  [[maybe_unused]] int given = ::fchown(file.get(), ownerOfFolder(path), static_cast<gid_t>(-1));
  return file;
}

// Whether the folder's entry of this name is the open file.
bool isAt(const std::string& path, int file) {
  struct stat info {
  }, entry{};
  return ::fstat(file, &info) == 0 && ::lstat(path.c_str(), &entry) == 0 && entry.st_dev == info.st_dev &&
         entry.st_ino == info.st_ino;
}

std::string remedyOf(int error) {
  switch (error) {
    case ENOENT:
      return "create the folder";
    case EACCES:
    case EPERM:
      return "it may belong to another user: remove it if no daemon of that user runs, or check the folder's "
             "permissions";
    case ELOOP:
    case ENXIO:
    case EISDIR:
      return "remove it";
    default:
      return "try again";
  }
}

}  // namespace

LockFile::LockFile(std::string path, const std::string& ifHeld) : path_(std::move(path)) {
  for (int i = 0; i < kOpenTries; ++i) {
    if (tryTake(ifHeld)) return;
  }
  fail("others take it again and again", ifHeld);
}

LockFile::~LockFile() {
  if (isAt(path_, file_.get())) ::unlink(path_.c_str());
}

void LockFile::fail(const std::string& problem, const std::string& remedy) const {
  throw std::runtime_error("lock " + path_ + ": " + problem + "; " + remedy);
}

// False: who had the lock removes the file.
bool LockFile::tryTake(const std::string& ifHeld) {
  UniqueFd file = make(path_);
  bool known = !file && errno == EEXIST;
  if (known) file = UniqueFd(::open(path_.c_str(), kHow));
  if (!file && (errno == EINTR || (known && errno == ENOENT))) return false;
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) fail(std::strerror(errno), remedyOf(errno));
  uid_t us = ::geteuid();
  bool isOurs = info.st_uid == us || (us == 0 && info.st_uid == ownerOfFolder(path_));
  if (!S_ISREG(info.st_mode) || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    fail("is no file that its owner alone may open", "remove it");
  if (!isOurs) fail("belongs to " + holders(info.st_uid), "remove it if no daemon of that user runs");
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) fail("held by a process of " + holders(info.st_uid), ifHeld);
    if (errno != EINTR) fail(std::strerror(errno), remedyOf(errno));
  }
  if (!isAt(path_, file.get())) return false;
  file_ = std::move(file);
  return true;
}

}  // namespace braid
