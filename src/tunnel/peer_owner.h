#pragma once

#include "base/packet.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/waiting_room.h"

namespace braid {

class Peer;

/// What peers hand to the tunnel that owns them, at once as SessionOwner says.
class PeerOwner : public DropObserver {
 public:
  /// An inner packet arrived, in the order of its flow.
  virtual void onDelivered(Peer& from, Packet packet) = 0;
  /// A queued or sent packet is too large for every path that is left: worth a "too big".
  virtual void onTooLarge(Peer& to, ByteView packet) = 0;
  /// A packet that waited for the peer, or that a session left behind which has ended: send it now, or answer it.
  virtual void onReturned(Peer& to, WaitingPacket waiting) = 0;
  /// A peer was heard of, or may have become usable or unusable. Nothing of the peer's follows: the peer may be
  /// changed from here.
  virtual void onPeerChanged(Peer& peer) = 0;
};

}  // namespace braid
