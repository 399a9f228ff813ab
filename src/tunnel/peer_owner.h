#pragma once

#include "base/packet.h"
#include "tunnel/lane/drop_observer.h"

namespace braid {

class Peer;

/// What peers hand to the tunnel that owns them, at once as SessionOwner says.
class PeerOwner : public DropObserver {
 public:
  /// An inner packet arrived, in the order of its flow.
  virtual void onDelivered(Peer& from, Packet packet) = 0;
  /// A queued or sent packet is too large for every path that is left: worth a "too big".
  virtual void onTooLarge(Peer& to, ByteView packet) = 0;
};

}  // namespace braid
