#pragma once

#include <cstdint>

#include "base/drop.h"
#include "base/packet.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/session/event.h"

namespace braid {

class Peer;

/// What peers tell the tunnel that owns them.
class PeerOwner : public DropObserver {
 public:
  /// An inner packet arrived, in the order of its flow.
  virtual void onDelivered(Peer& from, Packet packet) = 0;
  /// A queued or sent packet is too large for every path that is left: worth a "too big".
  virtual void onTooLarge(Peer& to, ByteView packet) = 0;
  virtual void onEvent(Event event) = 0;
  virtual void onDrop(Drop cause, uint64_t count) = 0;
};

}  // namespace braid
