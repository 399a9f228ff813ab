#include "gateway/line_writer.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace braid {

namespace {

bool isSocket(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

// A terminal that is ready has room for one byte, and a write of more waits for the rest, unless the descriptor says
// otherwise. A second one for the same terminal may.
UniqueFd openedAnew(int fd) {
  if (!::isatty(fd)) return {};
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// The descriptor stays as it is, for other processes share it: O_NONBLOCK would be theirs too. A pipe that is
// ready has room for PIPE_BUF bytes (pipe(7)).
ssize_t writeNow(int fd, bool socket, std::string_view bytes) {
  if (socket) return ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) == 1) return ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
  errno = EAGAIN;
  return -1;
}

}  // namespace

LineWriter::LineWriter(int fd)
    : terminal_(openedAnew(fd)), fd_(terminal_ ? terminal_.get() : fd), isSocket_(isSocket(fd)) {}

// How much of it could be written.
size_t LineWriter::writeSome(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = writeNow(fd_, isSocket_, bytes.substr(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

bool LineWriter::write(std::string_view line) {
  rest_.erase(0, writeSome(rest_));
  if (!rest_.empty()) return false;
  size_t done = writeSome(line);
  if (done > 0) rest_ = line.substr(done);
  return done > 0;
}

}  // namespace braid
