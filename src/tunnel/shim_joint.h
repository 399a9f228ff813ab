#pragma once

#include <memory>

#include "ackshim/ack_shim.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/options.h"
#include "tunnel/status.h"

namespace braid {

/// The ack shim's place in the tunnel, which may be empty: the shim can be switched off, and is always off on
/// a TAP device, because it reads IP packets only. While it is off, packets pass unseen.
class ShimJoint {
 public:
  /// `pool` and `knowledge` must outlive this object.
  ShimJoint(PacketPool& pool, const TunnelKnowledge& knowledge, const AckShim::Seeds& seeds)
      : pool_(pool), knowledge_(knowledge), seeds_(seeds) {}

  /// Switches the shim on or off or gives it new settings. A shim that is switched off forgets its flows and
  /// counters.
  void setUp(const TunnelOptions& options);

  /// A packet of a local host that the tunnel takes.
  void onFromHost(ByteView packet, const InnerPacket& ip, Time now) {
    if (shim_) shim_->onFromHost(packet, ip, now);
  }
  /// A packet of the peer; false: the local host is not to see it. `ip` may have been parsed before single fields
  /// of the packet were changed, which the shim does not read from `ip`.
  bool onToHost(ByteView packet, const InnerPacket& ip, Time now) {
    return !shim_ || shim_->onToHost(packet, ip, now) != AckShim::Verdict::kDrop;
  }
  /// The tunnel gave up this packet of a local host.
  void onDropped(ByteView packet, Time now);
  /// True when something was due: then packets may be ready to be polled.
  bool onTimer(Time now);

  /// Packets made or kept by the shim; empty: no more.
  Packet pollToHost() { return shim_ ? shim_->pollToHost() : Packet{}; }
  Packet pollToPeer() { return shim_ ? shim_->pollToPeer() : Packet{}; }

  Time nextDeadline() const { return shim_ ? shim_->nextDeadline() : kNever; }
  ShimStatus status() const;

 private:
  PacketPool& pool_;
  const TunnelKnowledge& knowledge_;
  AckShim::Seeds seeds_;
  std::unique_ptr<AckShim> shim_;  ///< nullptr: off
};

}  // namespace braid
