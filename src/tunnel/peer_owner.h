#pragma once

#include "base/packet.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/io.h"
#include "tunnel/status.h"

namespace braid {

class Peer;
class Session;

/// What a peer needs from the tunnel that owns it.
class PeerOwner : public DropObserver {
 public:
  virtual void onDelivered(Peer& from, Packet packet) = 0;
  virtual void onTooLarge(Peer& to, ByteView packet) = 0;
  virtual void onEvent(Event event) = 0;
  virtual void onDrop(Drop cause, uint64_t count) = 0;
  /// The session may be found by its id from now on. False when the id is taken.
  virtual bool addSession(Peer& peer, Session& session) = 0;
  virtual void removeSession(uint32_t id) = 0;
};

}  // namespace braid
