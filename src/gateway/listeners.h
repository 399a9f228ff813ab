#pragma once

#include <string>
#include <vector>

#include "gateway/socket_ids.h"
#include "gateway/socket_table.h"

namespace braid {

/// The sockets that peers may come to.
class Listeners {
 public:
  /// Both must outlive this.
  Listeners(SocketTable& sockets, SocketIds& ids) : sockets_(sockets), ids_(ids) {}

  /// Listens on these endpoints and no others; sockets of those that stay are kept. Throws SystemError: then
  /// all is as it was.
  void set(const std::vector<Endpoint>& endpoints);
  /// The endpoints as text, in the order of the configuration.
  std::vector<std::string> names() const;

 private:
  struct Listener {
    Endpoint endpoint;
    SocketId id;
  };
  void close(SocketId id);

  SocketTable& sockets_;
  SocketIds& ids_;
  std::vector<Listener> open_;
};

}  // namespace braid
