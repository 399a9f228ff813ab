#pragma once

#include <ev.h>

#include <functional>
#include <list>
#include <string>

#include "host/system.h"

namespace braid {

/// A Unix stream socket that answers each line with a line. Runs on a libev loop, which it does not
/// own. Closes a client that sends a line above 1 MiB or does not read its answers. At most 16
/// clients at a time.
class ControlServer {
 public:
  using Handler = std::function<std::string(const std::string& line)>;

  /// Binds `path` (mode 0600). Replaces an existing socket on which nobody listens. Throws
  /// std::runtime_error.
  ControlServer(const std::string& path, struct ev_loop* loop, Handler handler);
  /// Removes the path.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  struct Client {
    ControlServer* server;
    UniqueFd fd;
    ev_io watcher{};
    std::string input;
    std::string output;
  };
  void bindPath();
  void onConnect();
  /// Return false when the client must be closed.
  bool onReady(Client& client, int events);
  bool readLines(Client& client);
  bool flush(Client& client);
  void close(Client& client);

  std::string path_;
  struct ev_loop* loop_;
  Handler handler_;
  UniqueFd listener_;
  ev_io watcher_{};
  std::list<Client> clients_;
};

}  // namespace braid
