#pragma once

#include <cstdint>

#include "simnet/station.h"
#include "simnet/tcp/endpoint.h"

namespace braid::sim::tcp {

/// A TCP connection between two hosts, with its handshake. It exchanges real IP packets through the
/// hosts' stations. It stays open for any number of messages in both directions, and lives as long
/// as the timeline.
class Connection final : public Host {
 public:
  struct Ports {
    uint16_t client = 0;
    uint16_t server = 0;
  };
  /// Sends the SYN at once. The ports must be free on their stations. Both sides use the same
  /// options, or each side its own.
  Connection(Timeline& timeline, Station& client, Station& server, Ports ports,
             const Options& options)
      : Connection(timeline, client, server, ports, options, options) {}
  Connection(Timeline& timeline, Station& client, Station& server, Ports ports,
             const Options& ofClient, const Options& ofServer);

  Endpoint& client() { return client_; }
  Endpoint& server() { return server_; }
  const Endpoint& client() const { return client_; }
  const Endpoint& server() const { return server_; }
  /// Makes both sides stop sending and ignore what they receive. Messages that have not arrived are
  /// discarded.
  void abort();

 private:
  Endpoint client_, server_;
};

}  // namespace braid::sim::tcp
