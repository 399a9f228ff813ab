#include "gateway/config/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "host/system.h"

namespace braid {

namespace {

// Writes a new file. Removes what has its name: an older attempt, or a link that somebody laid.
// Returns whether all of it was written.
bool writeWhole(const std::string& path, const std::string& text, mode_t mode) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return false;
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

std::string readStateFile(const std::string& path, size_t most) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file && errno == ENOENT) return {};
  std::string text;
  char part[16384];
  ssize_t got = -1;
  while (file && text.size() <= most) {
    got = ::read(file.get(), part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  if (got < 0) throw SystemError(errno, "cannot read " + path + ": " + std::strerror(errno));
  return text;
}

// Tries twice, because a daemon that ends has no later chance to write.
std::string writeStateFile(const std::string& path, const std::string& text, mode_t mode) {
  std::string fresh = path + ".new";
  for (int tries = 0; tries < 2; ++tries) {
    if (writeWhole(fresh, text, mode) && ::rename(fresh.c_str(), path.c_str()) == 0) return {};
  }
  return "cannot write " + path + ": " + std::strerror(errno);
}

}  // namespace braid
