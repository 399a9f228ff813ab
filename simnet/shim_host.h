#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ackshim/ack_shim.h"
#include "simnet/inner_packets.h"
#include "simnet/station.h"
#include "simnet/timeline.h"

namespace braid::sim {

/// A host and its hypervisor, attached to a network. The hypervisor can run an ack shim
/// (ackshim/ack_shim.h) between host and network.
class ShimHost final : public Station {
 public:
  /// `transmit` is called with each packet that the hypervisor sends to the network.
  using Transmit = std::function<void(Bytes)>;
  ShimHost(Timeline& timeline, std::string name, Address address, Transmit transmit)
      : timeline_(timeline),
        name_(std::move(name)),
        address_(address),
        transmit_(std::move(transmit)) {}

  const std::string& name() const override { return name_; }
  Address host(bool) const override { return address_; }
  void send(ByteView packet) override;
  void listen(uint8_t protocol, uint16_t port, Handler handler) override;

  void addShim(AckShimOptions options, uint64_t seed);
  const AckShim* shim() const { return shim_.get(); }
  /// A packet from the network.
  void arrive(ByteView packet);

 private:
  void pollShim();
  void armShim();
  void deliver(ByteView packet);

  Timeline& timeline_;
  std::string name_;
  Address address_;
  Transmit transmit_;
  std::map<std::pair<uint8_t, uint16_t>, Handler> handlers_;
  std::unique_ptr<PacketPool> pool_;
  std::unique_ptr<AckShim> shim_;
  Time shimAt_ = kNever;  // when the shim's timer runs
};

}  // namespace braid::sim
