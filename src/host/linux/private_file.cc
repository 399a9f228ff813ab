#include "host/linux/private_file.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>

namespace braid {

namespace {

bool isRootOrUs(uid_t user) {
  return user == 0 || user == geteuid();
}

// acl(5) as it stands in system.posix_acl_access, in little-endian order (linux/posix_acl_xattr.h).
struct AclEntry {
  uint16_t tag, permissions;
  uint32_t user;
};
constexpr uint16_t kAclUser = 0x02, kAclGroupOwner = 0x04, kAclGroup = 0x08, kAclOther = 0x20;

// What the group's bits of the mode stand for: the mask of an access control list, or the group itself.
bool onlyWeMayRead(int file, const struct stat& info) {
  constexpr size_t kHeader = 4, kMost = 32;
  std::array<uint8_t, kHeader + kMost * sizeof(AclEntry)> list;
  ssize_t size = fgetxattr(file, "system.posix_acl_access", list.data(), list.size());
  if (size < 0) return (errno == ENODATA || errno == ENOTSUP) && info.st_gid == 0;
  for (size_t at = kHeader; at + sizeof(AclEntry) <= static_cast<size_t>(size); at += sizeof(AclEntry)) {
    AclEntry entry;
    std::memcpy(&entry, list.data() + at, sizeof entry);
    bool others = entry.tag == kAclGroupOwner || entry.tag == kAclGroup || entry.tag == kAclOther ||
                  (entry.tag == kAclUser && !isRootOrUs(entry.user));
    if (others && entry.permissions != 0) return false;
  }
  return true;
}

// `info`: of the open file. The folder's entry of that name must be the file itself, no link to elsewhere.
bool isOurCredential(int file, const struct stat& info, const std::string& path, const std::string& folder) {
  if (folder.empty() || std::filesystem::path(path).parent_path() != std::filesystem::path(folder))
    return false;
  struct stat entry {
  }, around{};
  if (lstat(path.c_str(), &entry) != 0 || lstat(folder.c_str(), &around) != 0) return false;
  bool itself = entry.st_dev == info.st_dev && entry.st_ino == info.st_ino && around.st_dev == info.st_dev;
  bool folderIsClosed =
      S_ISDIR(around.st_mode) && isRootOrUs(around.st_uid) && (around.st_mode & (S_IWGRP | S_IRWXO)) == 0;
  bool readOnly = (info.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) == 0;
  return itself && folderIsClosed && readOnly && isRootOrUs(info.st_uid) && onlyWeMayRead(file, info);
}

}  // namespace

bool isPrivate(int file, const struct stat& info, const std::string& path, const std::string& credentials) {
  return (info.st_mode & (S_IRWXG | S_IRWXO)) == 0 || isOurCredential(file, info, path, credentials);
}

}  // namespace braid
