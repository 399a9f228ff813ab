#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "inet/endpoint.h"
#include "inet/inner_packet.h"

namespace braid::sim {

/// Where a simulated host is attached: it sends and receives whole IP packets there.
class Station {
 public:
  virtual ~Station() = default;
  virtual const std::string& name() const = 0;
  virtual Address host(bool v6) const = 0;
  /// A packet of the host.
  virtual void send(ByteView packet) = 0;
  using Handler = std::function<void(ByteView, const InnerPacket&)>;
  /// Who gets packets of this protocol to this port (ICMP echo: identifier).
  virtual void listen(uint8_t protocol, uint16_t port, Handler handler) = 0;
};

/// A host model that lives as long as the world.
class Host {
 public:
  virtual ~Host() = default;
};

}  // namespace braid::sim
