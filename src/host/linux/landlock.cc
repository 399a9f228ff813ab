#include "host/linux/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "host/system.h"

namespace braid {
namespace {

// Of linux/landlock.h, which older kernel headers lack in part. The numbers of the system calls are
// the same for all architectures.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kVersionQuestion = 1, kPathBeneath = 1;
constexpr uint64_t kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3,
                   kRemoveFolder = 1 << 4, kRemoveFile = 1 << 5, kMakeFolder = 1 << 7,
                   kMakeFile = 1 << 8, kTruncate = 1 << 14, kControlDevice = 1 << 15;
constexpr uint64_t kOfFiles = kWriteFile | kReadFile | kTruncate;

struct RulesetAttributes {
  uint64_t handledAccess;
};
struct [[gnu::packed]] PathBeneathAttributes {
  uint64_t allowedAccess;
  int32_t parent;
};

// All rights that this version of Landlock knows, so that what is not allowed is refused.
uint64_t rightsOf(long version) {
  uint64_t rights = (uint64_t{1} << 13) - 1;  // version 1
  if (version >= 2) rights |= 1 << 13;        // moving a file to another folder
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kControlDevice;
  return rights;
}

[[noreturn]] void fail(const std::string& what) {
  int error = errno;
  throw SystemError(error, "cannot restrict the daemon to its files (Landlock): " + what + ": " +
                               std::strerror(error) +
                               "; try again, or start without 'landlock' in the kernel's 'lsm='");
}

class Ruleset {
 public:
  explicit Ruleset(uint64_t rights) : rights_(rights) {
    RulesetAttributes attributes{rights};
    fd_ = UniqueFd(static_cast<int>(::syscall(kCreateRuleset, &attributes, sizeof attributes, 0u)));
    if (!fd_) fail("rules");
  }

  void allow(const std::string& path, uint64_t access) {
    UniqueFd parent(::open(path.c_str(), O_PATH | O_CLOEXEC));
    // EACCES: what this process cannot reach anyway.
    if (!parent && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return;
    struct stat info {};
    if (!parent || ::fstat(parent.get(), &info) != 0) fail(path);
    if (!S_ISDIR(info.st_mode)) access &= kOfFiles;
    PathBeneathAttributes rule{access & rights_, parent.get()};
    if (::syscall(kAddRule, fd_.get(), kPathBeneath, &rule, 0u) != 0) fail(path);
  }

  void enforce() const {
    if (::syscall(kRestrictSelf, fd_.get(), 0u) != 0) fail("start");
  }

 private:
  uint64_t rights_;
  UniqueFd fd_;
};

}  // namespace

std::string restrictFiles(const AllowedFiles& allowed) {
  const long version = ::syscall(kCreateRuleset, nullptr, size_t{0}, kVersionQuestion);
  if (version < 1) {
    switch (errno) {
      case ENOSYS:
        return "this kernel has no Landlock";
      case EOPNOTSUPP:
        return "Landlock is switched off in this kernel";
      case EPERM:
        return "a filter of system calls around this process refuses Landlock";
      default:
        fail("version");
    }
  }
  Ruleset rules(rightsOf(version));
  constexpr uint64_t kRead = kReadFile | kReadFolder, kWrite = kWriteFile | kTruncate;
  for (const std::string& path : allowed.read) rules.allow(path, kRead);
  for (const std::string& path : allowed.write) rules.allow(path, kRead | kWrite);
  for (const std::string& path : allowed.make)
    rules.allow(path, kRead | kWrite | kMakeFile | kMakeFolder | kRemoveFile | kRemoveFolder);
  rules.enforce();
  return {};
}

}  // namespace braid
