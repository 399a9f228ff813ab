#pragma once

#include <stdexcept>
#include <string>

namespace braid {

/// A refusal of the operating system in words for the user: what was wanted, what the system said, what to
/// do.
class SystemError : public std::runtime_error {
 public:
  /// `what` is the whole line; `code` is the errno behind it.
  SystemError(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// "needs CAP_NET_ADMIN: ..." after EPERM and EACCES.
inline constexpr const char* kNetAdminRemedy =
    "needs CAP_NET_ADMIN: run as root, or give the service AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW";

}  // namespace braid
