#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "inet/addresses.h"
#include "inet/inner_packet.h"

namespace braid::sim {

/// The attachment point of a simulated host, through which it sends and receives whole IP packets.
class Station {
 public:
  virtual ~Station() = default;
  virtual const std::string& name() const = 0;
  virtual Address host(bool v6) const = 0;
  /// Sends a packet of the host into the network.
  virtual void send(ByteView packet) = 0;
  using Handler = std::function<void(ByteView, const InnerPacket&)>;
  /// Registers the handler for packets of this protocol to this port (ICMP echo: this identifier).
  virtual void listen(uint8_t protocol, uint16_t port, Handler handler) = 0;
};

/// A model of a host's traffic. It lives as long as the world.
class Host {
 public:
  virtual ~Host() = default;
};

}  // namespace braid::sim
