#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gateway/uplinks/socket_table.h"

namespace braid {

/// The sockets on which peers may connect.
class Listeners {
 public:
  /// `sockets` and `ids` must outlive this.
  Listeners(SocketTable& sockets, SocketIds& ids) : sockets_(sockets), ids_(ids) {}

  /// Listens on these endpoints as well. An endpoint of an address family that the kernel lacks
  /// (EAFNOSUPPORT, on a machine without IPv6) is left out and logged, as long as others are left.
  /// An address that no interface has yet is waited for, and logged.
  /// Throws SystemError; nothing is changed then.
  void open(const std::vector<Endpoint>& endpoints);
  /// Closes all listening sockets except these, and puts the rest into this order.
  void keepOnly(const std::vector<Endpoint>& endpoints);
  /// The endpoint of a listening socket, and the socket of an endpoint; nullopt: the gateway does
  /// not listen on it.
  std::optional<Endpoint> endpointOf(SocketId id) const;
  std::optional<SocketId> idOf(const Endpoint& endpoint) const;
  /// The endpoints as text, in the order of the configuration.
  std::vector<std::string> names() const;

 private:
  struct Listener {
    Endpoint endpoint;
    SocketId id;
  };
  bool openOrAwait(SocketId id, SocketOptions options);
  void close(SocketId id);
  /// nullptr: the gateway does not listen on it.
  Listener* find(const Endpoint& endpoint);

  SocketTable& sockets_;
  SocketIds& ids_;
  std::vector<Listener> open_;
};

}  // namespace braid
