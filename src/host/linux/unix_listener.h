#pragma once

#include <sys/stat.h>

#include <string>

#include "host/system.h"

namespace braid {

/// Where an operator chose the path of a Unix socket, for messages such as "control socket
/// /run/x.sock: bad path; set control.socket".
struct UnixListenerOptions {
  const char* title = "";     ///< "control socket "
  const char* setPath = "";   ///< "set control.socket"
  const char* setGroup = "";  ///< "change control.group"
  int backlog = 16;
};

/// Removes the socket of a process that died. Throws std::runtime_error with a remedy when a
/// process answers there, or when the file is not a socket.
void removeStaleSocket(const std::string& path, const UnixListenerOptions& options);

/// A listening Unix socket that the user of this process and one group may use (mode 0660).
class UnixListener {
 public:
  /// `group`: empty for the process's own. Throws std::runtime_error with a remedy.
  UnixListener(std::string path, const std::string& group, const UnixListenerOptions& options);
  /// Removes the file, unless another one has taken its place.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  /// Does not block, and is closed by exec().
  int get() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  struct stat made_ {};
  UniqueFd fd_;
};

}  // namespace braid
