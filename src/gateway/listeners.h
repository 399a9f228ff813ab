#pragma once

#include <optional>
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

  /// Listens on these endpoints as well. Those of a family that the kernel lacks (EAFNOSUPPORT: a machine without IPv6) are
  /// left out, and logged, as long as there are others. Throws SystemError: then all is as it was.
  void open(const std::vector<Endpoint>& endpoints);
  /// Listens on no others; the rest is in this order from now on.
  void keepOnly(const std::vector<Endpoint>& endpoints);
  /// The endpoint of a socket that listens, and the socket of an endpoint; nullopt: it is none, or not listened on.
  std::optional<Endpoint> endpointOf(SocketId id) const;
  std::optional<SocketId> idOf(const Endpoint& endpoint) const;
  /// The endpoints as text, in the order of the configuration.
  std::vector<std::string> names() const;

 private:
  struct Listener {
    Endpoint endpoint;
    SocketId id;
  };
  void close(SocketId id);
  /// nullptr: it is not listened on.
  Listener* find(const Endpoint& endpoint);

  SocketTable& sockets_;
  SocketIds& ids_;
  std::vector<Listener> open_;
};

}  // namespace braid
