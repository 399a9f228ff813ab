#include "host/linux/unix_listener.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace braid {
namespace {

/// Refuses for one path.
class Refusal {
 public:
  Refusal(const std::string& path, const UnixListenerOptions& options)
      : path_(path), options_(options) {}
  [[noreturn]] void operator()(const std::string& problem, const std::string& remedy) const {
    throw std::runtime_error(options_.title + path_ + ": " + problem + "; " + remedy);
  }

 private:
  const std::string& path_;
  const UnixListenerOptions& options_;
};

UniqueFd unixSocket(const Refusal& fail) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) fail(std::strerror(errno), "raise the limit of open files, or free memory");
  return fd;
}

// Retries a refusal that may pass: a file that is left here is still there after the process has
// ended.
bool removeFile(const std::string& path) {
  for (int tries = 0; tries < 3; ++tries) {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return true;
  }
  return false;
}

sockaddr_un socketAddress(const std::string& path, const Refusal& fail) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    fail("bad path", "use 1 to 107 bytes");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

gid_t groupId(const std::string& name, const Refusal& fail, const UnixListenerOptions& options) {
  group entry{};
  group* found = nullptr;
  std::vector<char> room(1 << 16);
  getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
  if (found == nullptr)
    fail("no group '" + name + "'", std::string("create it, or ") + options.setGroup);
  return found->gr_gid;
}

// Binds and listens; `made` is the file status of the new socket.
UniqueFd listenAt(const std::string& path, const std::string& group,
                  const UnixListenerOptions& options, struct stat& made) {
  const Refusal fail(path, options);
  sockaddr_un address = socketAddress(path, fail);
  UniqueFd fd = unixSocket(fail);
  mode_t before = umask(0177);  // nobody else can connect before group and mode are set
  int bound = bind(fd.get(), generic(address), sizeof address);
  int error = errno;
  umask(before);
  if (bound != 0) fail(std::strerror(error), "check the folder's permissions");
  try {
    if (!group.empty() &&
        chown(path.c_str(), static_cast<uid_t>(-1), groupId(group, fail, options)) != 0) {
      fail("cannot give it to group '" + group + "': " + std::strerror(errno),
           "make the daemon's user a member");
    }
    if (chmod(path.c_str(), 0660) != 0 || listen(fd.get(), options.backlog) != 0 ||
        lstat(path.c_str(), &made) != 0) {
      fail(std::strerror(errno), "check the folder's permissions");
    }
  } catch (...) {
    removeFile(path);
    throw;
  }
  return fd;
}

}  // namespace

void removeStaleSocket(const std::string& path, const UnixListenerOptions& options) {
  const Refusal fail(path, options);
  sockaddr_un address = socketAddress(path, fail);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return;
    fail(std::strerror(errno), "check the folder's permissions");
  }
  if (!S_ISSOCK(info.st_mode))
    fail("something that is no socket is there", std::string("remove it, or ") + options.setPath);
  UniqueFd probe = unixSocket(fail);
  if (connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN)
    fail("another daemon answers there", std::string("stop it first, or ") + options.setPath);
  if (errno != ECONNREFUSED) fail(std::strerror(errno), "remove it, or check its permissions");
  if (!removeFile(path)) fail(std::strerror(errno), "remove it, or check the folder's permissions");
}

UnixListener::UnixListener(std::string path, const std::string& group,
                           const UnixListenerOptions& options)
    : path_(std::move(path)), fd_(listenAt(path_, group, options, made_)) {}

UnixListener::~UnixListener() {
  struct stat info {};
  int found = -1;
  for (int tries = 0; tries < 3 && found != 0; ++tries) found = lstat(path_.c_str(), &info);
  if (found == 0 && info.st_dev == made_.st_dev && info.st_ino == made_.st_ino) removeFile(path_);
}

}  // namespace braid
