#pragma once

// What happens to inner packets inside the sessions. The tunnel polls these events after each call
// that may have caused some, and hands them to the part that forwards packets.

#include <cstdint>
#include <utility>

#include "base/containers.h"
#include "base/packet.h"

namespace braid {

class Peer;

/// Where a packet to be sent comes from.
enum class PacketOrigin : uint8_t {
  kLocalHost,    ///< gets an ICMP error when the packet cannot be sent
  kNobody,       ///< no one to tell: a copy of a flooded frame, or from another peer
  kEndedSession  ///< was sent before: the ack shim and the ECN proxy have seen it
};

struct PacketEvent {
  enum class Kind : uint8_t {
    kDelivered,  ///< it arrived from the peer, in the order of its flow
    kTooLarge,   ///< it was dropped: it is too large for every path that is left
    /// A packet of a TCP flow was dropped for good: by AQM, at the byte bound, or because it could
    /// not be repaired in time. Packets dropped because a peer is down are not reported.
    kDropped,
    /// The packet was staged for the peer, or its session has ended and the peer does not have it,
    /// as far as the session knows. The packet is to be sent again, or answered.
    kReturned,
  };
  Kind kind{};
  PacketOrigin origin{};  ///< of a packet that is kReturned
  Peer* peer = nullptr;   ///< where it came from, or to which it was sent
  Packet packet;          ///< the whole packet (TUN) or frame (TAP)
};

/// The events of all peers, in the order in which they happened.
using PacketEventQueue = Ring<PacketEvent>;

/// Where one peer, with its sessions, reports its events.
class PacketEvents {
 public:
  /// `queue` must outlive this object. `peer` is only passed on.
  PacketEvents(PacketEventQueue& queue, Peer* peer) : queue_(queue), peer_(peer) {}

  void push(PacketEvent::Kind kind, Packet packet,
            PacketOrigin origin = PacketOrigin::kEndedSession) {
    queue_.pushBack({kind, origin, peer_, std::move(packet)});
  }

 private:
  PacketEventQueue& queue_;
  Peer* peer_;
};

}  // namespace braid
