#include "host/linux/files.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "host/system.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = 0750;  // StateDirectoryMode of systemd/braid@.service

bool isRootOrUs(uid_t user) {
  return user == 0 || user == ::geteuid();
}

// Checks this folder and all folders above it. Returns the first problem; empty: none.
std::string problemOfWay(const fs::path& parent) {
  fs::path at;
  for (const fs::path& name : parent) {
    at /= name;
    struct stat entry {
    }, info{};
    if (::lstat(at.c_str(), &entry) != 0 || ::stat(at.c_str(), &info) != 0)
      return at.string() + ": " + std::strerror(errno);
    if (!S_ISDIR(info.st_mode)) return at.string() + " is no folder";
    if (!isRootOrUs(entry.st_uid) || !isRootOrUs(info.st_uid))
      return at.string() + " belongs to another user";
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0)
      return "others may write to " + at.string();
  }
  return {};
}

// Returns an errno; 0: done.
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

namespace {

// An entry of acl(5) as stored in the attribute system.posix_acl_access, little-endian
// (linux/posix_acl_xattr.h).
struct AclEntry {
  uint16_t tag, permissions;
  uint32_t user;
};
constexpr uint16_t kAclUser = 0x02, kAclGroupOwner = 0x04, kAclGroup = 0x08, kAclOther = 0x20;

// Whether only this user and root may read the file, although its mode has group bits. These are
// the mask of an access control list or, without a list, the group's own rights.
bool onlyWeMayRead(int file, const struct stat& info) {
  constexpr size_t kHeader = 4, kMost = 32;
  std::array<uint8_t, kHeader + kMost * sizeof(AclEntry)> list;
  ssize_t size = fgetxattr(file, "system.posix_acl_access", list.data(), list.size());
  if (size < 0) return (errno == ENODATA || errno == ENOTSUP) && info.st_gid == 0;
  for (size_t at = kHeader; at + sizeof(AclEntry) <= static_cast<size_t>(size);
       at += sizeof(AclEntry)) {
    AclEntry entry;
    std::memcpy(&entry, list.data() + at, sizeof entry);
    bool others = entry.tag == kAclGroupOwner || entry.tag == kAclGroup || entry.tag == kAclOther ||
                  (entry.tag == kAclUser && !isRootOrUs(entry.user));
    if (others && entry.permissions != 0) return false;
  }
  return true;
}

// `info`: fstat() of the open file. The folder's entry of that name must be the file itself, not a
// link to elsewhere.
bool isOurCredential(int file, const struct stat& info, const std::string& path,
                     const std::string& folder) {
  if (folder.empty() || std::filesystem::path(path).parent_path() != std::filesystem::path(folder))
    return false;
  struct stat entry {
  }, around{};
  if (lstat(path.c_str(), &entry) != 0 || lstat(folder.c_str(), &around) != 0) return false;
  bool itself =
      entry.st_dev == info.st_dev && entry.st_ino == info.st_ino && around.st_dev == info.st_dev;
  bool folderIsClosed = S_ISDIR(around.st_mode) && isRootOrUs(around.st_uid) &&
                        (around.st_mode & (S_IWGRP | S_IRWXO)) == 0;
  bool readOnly = (info.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) == 0;
  return itself && folderIsClosed && readOnly && isRootOrUs(info.st_uid) &&
         onlyWeMayRead(file, info);
}

}  // namespace

bool isPrivate(int file, const struct stat& info, const std::string& path,
               const std::string& credentials) {
  return (info.st_mode & (S_IRWXG | S_IRWXO)) == 0 ||
         isOurCredential(file, info, path, credentials);
}

namespace {

bool writeEach(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Returns an errno; 0: done.
int syncNames(const std::string& folder) {
  UniqueFd names(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return names && ::fsync(names.get()) == 0 ? 0 : errno;
}

// Writes a file durably under a temporary name, then calls name() to give it its final one, then
// makes the folder entry durable. The temporary name begins with a dot; if a crash leaves such a
// file, the next call overwrites it. Returns an errno; 0: done.
template <typename Name>
int place(const std::string& path, std::string_view text, mode_t mode, Name&& name) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path(),
                        fresh = folder /
                                ("." + std::filesystem::path(path).filename().string() + ".new");
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file) return errno;
  bool good = ::fchmod(file.get(), mode) == 0 && writeEach(file.get(), text) &&
              ::fsync(file.get()) == 0 && name(fresh.c_str(), path.c_str()) == 0;
  int error = good ? 0 : errno;
  ::unlink(fresh.c_str());
  return good ? syncNames(folder.string()) : error;
}

}  // namespace

std::string syncFolder(const std::string& folder) {
  int error = syncNames(folder);
  return error == 0 ? "" : "cannot write the folder " + folder + ": " + std::strerror(error);
}

std::optional<std::string> textOfFile(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  ssize_t got;
  do {
    got = ::read(file.get(), part.data(), part.size());
    if (got > 0) text.append(part.data(), static_cast<size_t>(got));
  } while (got > 0 || (got < 0 && errno == EINTR));
  if (got < 0) return std::nullopt;
  return text;
}

std::string writeDurableFile(const std::string& path, std::string_view text, mode_t mode) {
  int error = place(path, text, mode, ::rename);
  return error == 0 ? "" : "cannot write " + path + ": " + std::strerror(error);
}

int newDurableFile(const std::string& path, std::string_view text, mode_t mode) {
  bool linked = false;
  auto name = [&](const char* fresh, const char* wanted) {
    int result = ::link(fresh, wanted);
    linked = result == 0;
    return result;
  };
  int error = place(path, text, mode, name);
  if (error != 0 && linked) ::unlink(path.c_str());
  return error;
}

namespace {

// A try fails only when another process ended meanwhile and removed its lock file.
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

// Creates the lock file. Only a newly created file is given to another owner, because an existing
// one may be a link to something else. Without CAP_CHOWN it stays root's.
UniqueFd make(const std::string& path) {
  UniqueFd file(::open(path.c_str(), kHow | O_CREAT | O_EXCL, 0600));
  if (!file || ::geteuid() != 0) return file;
  [[maybe_unused]] int given = ::fchown(file.get(), ownerOfFolder(path), static_cast<gid_t>(-1));
  return file;
}

// Whether `path` still names the open file.
bool isAt(const std::string& path, int file) {
  struct stat info {
  }, entry{};
  return ::fstat(file, &info) == 0 && ::lstat(path.c_str(), &entry) == 0 &&
         entry.st_dev == info.st_dev && entry.st_ino == info.st_ino;
}

std::string remedyOf(int error) {
  switch (error) {
    case ENOENT:
      return "create the folder";
    case EACCES:
    case EPERM:
      return "it may belong to another user: remove it if no daemon of that user runs, or check "
             "the folder's "
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

bool LockFile::isHeld(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void LockFile::fail(const std::string& problem, const std::string& remedy) const {
  throw std::runtime_error("lock " + path_ + ": " + problem + "; " + remedy);
}

// False: the process that held the lock has just removed the file, so try again.
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
  if (!isOurs)
    fail("belongs to " + holders(info.st_uid), "remove it if no daemon of that user runs");
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) fail("held by a process of " + holders(info.st_uid), ifHeld);
    if (errno != EINTR) fail(std::strerror(errno), remedyOf(errno));
  }
  if (!isAt(path_, file.get())) return false;
  file_ = std::move(file);
  return true;
}

}  // namespace braid
