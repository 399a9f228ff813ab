#pragma once

#include <memory>
#include <optional>

#include "ackshim/ack_shim.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/link_headers.h"
#include "tunnel/options.h"
#include "tunnel/status.h"

namespace braid {

/// The ack shim's place in the tunnel, which may be empty: while the shim is switched off, packets pass unseen. The shim
/// knows IP packets only: on a TAP device this class takes the Ethernet header off for it, and puts one before what the
/// shim makes. Frames with VLAN tags pass unseen: hosts of two VLANs may have the same addresses.
class ShimJoint {
 public:
  /// `pool` and `knowledge` must outlive this object. `hash`: of addresses, see LinkHeaders.
  ShimJoint(PacketPool& pool, const TunnelKnowledge& knowledge, const AckShim::Seeds& seeds,
            const FlowKeyHash& hash)
      : pool_(pool), knowledge_(knowledge), seeds_(seeds), hash_(hash) {}

  /// Switches the shim on or off or gives it new settings. A shim that is switched off forgets its flows and
  /// counters.
  void setUp(const TunnelOptions& options);

  /// A packet or frame of a local host that the tunnel takes; `ip` begins at `ipOffset`.
  void onFromHost(ByteView packet, const InnerPacket& ip, size_t ipOffset, Time now) {
    if (!isSeen(ip, ipOffset)) return;
    if (links_) noteLink(packet, ip);
    shim_->onFromHost(packet.subspan(ipOffset, ip.size), ip, now);
  }
  /// A packet or frame of the peer; false: the local host is not to see it. `ip` begins at `ipOffset`, and may have been
  /// parsed before single fields of the packet were changed, which the shim does not read from `ip`.
  bool onToHost(ByteView packet, const InnerPacket& ip, size_t ipOffset, Time now) {
    return !isSeen(ip, ipOffset) ||
           shim_->onToHost(packet.subspan(ipOffset, ip.size), ip, now) != AckShim::Verdict::kDrop;
  }
  /// The tunnel gave up this packet or frame of a local host.
  void onDropped(ByteView packet, Time now);
  /// True when something was due: then packets may be ready to be polled.
  bool onTimer(Time now);

  /// Packets or frames made or kept by the shim; empty: no more.
  Packet pollToHost();
  Packet pollToPeer();
  /// On a TAP device: where the frames of a local host's flow go; nullopt: no longer known.
  std::optional<MacAddress> nextHopOf(const FlowKey& fromHost) const;

  Time nextDeadline() const { return shim_ ? shim_->nextDeadline() : kNever; }
  ShimStatus status() const;

 private:
  bool isSeen(const InnerPacket& ip, size_t ipOffset) const {
    return shim_ && ipOffset == (links_ ? LinkHeaders::kSize : 0) && ip.tcp;
  }
  void noteLink(ByteView frame, const InnerPacket& ip);
  template <typename Poll, typename Header>
  Packet pollWith(Poll&& poll, Header&& header);

  PacketPool& pool_;
  const TunnelKnowledge& knowledge_;
  AckShim::Seeds seeds_;
  FlowKeyHash hash_;
  std::unique_ptr<AckShim> shim_;     ///< nullptr: off
  std::optional<LinkHeaders> links_;  ///< while the shim is on, on a TAP device
};

}  // namespace braid
