#pragma once

#include <ev.h>

#include <memory>
#include <string>

#include "gateway/control/control_session.h"
#include "host/linux/files.h"

namespace braid {

/// The path of a control socket. This process owns it alone while this object lives. Take it before
/// changing anything at the host: two daemons with one path would share a configuration.
class ControlPath {
 public:
  /// Does not block. Removes a stale socket. Throws std::runtime_error with a remedy when another
  /// daemon owns the path or answers there, when the path is something other than a socket, or when
  /// the system refuses.
  explicit ControlPath(std::string path);
  const std::string& text() const { return path_; }
  /// The lock file of a control socket.
  static std::string lockOf(const std::string& path) { return path + ".lock"; }

 private:
  std::string path_;
  LockFile lock_;
};

/// The control socket on the daemon's event loop: a Unix stream socket with mode 0660; see
/// control_session.h for the protocol. The server never blocks the loop. It serves at most
/// kMaxClients clients; a further one gets an error line and is closed.
class ControlServer {
 public:
  static constexpr size_t kMaxClients = 16;

  /// Listens at `path`; with a `group`, the socket belongs to that group. Throws std::runtime_error
  /// with a remedy when the group is unknown, or the system refuses. `path`, `loop` and `handler`
  /// must outlive the server.
  ControlServer(struct ev_loop* loop, const ControlPath& path, const std::string& group,
                ControlHandler& handler);
  /// Closes all clients and removes the socket if it is still this server's.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  const std::string& path() const;
  size_t clients() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
