#pragma once

#include <unistd.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace braid {

/// An error of the operating system in words for the user: what was wanted, what the system said,
/// what to do.
class SystemError : public std::runtime_error {
 public:
  /// `what` is the whole line; `code` is the errno.
  SystemError(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// The remedy to add after EPERM and EACCES.
inline constexpr const char* kNetAdminRemedy =
    "needs CAP_NET_ADMIN: run as root, or give the service AmbientCapabilities=CAP_NET_ADMIN "
    "CAP_NET_RAW";

/// Owns a file descriptor; closes it on destruction. -1 owns nothing.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace braid
