#pragma once

#include <ev.h>

#include <memory>
#include <string>

#include "gateway/control/control_session.h"
#include "host/linux/lock_file.h"

namespace braid {

/// The path of a control socket, which is this process's alone while this lives. Take it before anything of
/// the host is changed: two daemons of one path would share a configuration.
class ControlPath {
 public:
  /// Waits for nobody. A stale socket is removed. Throws std::runtime_error with a remedy when another daemon has the
  /// path, or answers there, something else is there, or the system refuses.
  explicit ControlPath(std::string path);
  const std::string& text() const { return path_; }

 private:
  std::string path_;
  LockFile lock_;
};

/// The control socket on the daemon's event loop: Unix stream, mode 0660, protocol in control_session.h. The
/// server never blocks the loop and has a bounded number of clients; a further one is turned away with an error
/// line.
class ControlServer {
 public:
  static constexpr size_t kMaxClients = 16;

  /// Listens at `path`; with a `group`, the socket belongs to it. Throws std::runtime_error with a remedy
  /// when the group is unknown, or the system refuses. `path`, `loop` and `handler` must outlive the server.
  ControlServer(struct ev_loop* loop, const ControlPath& path, const std::string& group,
                ControlHandler& handler);
  /// Closes all clients and removes the socket, if it is still this server's.
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
