#pragma once

// What a session hands to its owner, and what all sessions of an owner share.

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/lane/stream_rations.h"

namespace braid {

/// Called at once and not polled: what the owner does with a packet depends on the session as it is at that
/// moment (it writes the inner MTU into TCP's MSS option), and a packet that is too large or thrown away is gone
/// after the call.
class SessionOwner : public DropObserver {
 public:
  /// An inner packet arrived, in the order of its flow.
  virtual void onDelivered(Packet packet) = 0;
  /// A queued or sent packet is too large for every path that is left: worth a "too big".
  virtual void onTooLarge(ByteView packet) = 0;
  /// An inner packet that the session has not brought to the peer, as far as it knows (Session::handBack).
  virtual void onHandedBack(Packet) {}
  /// One after the other, or side by side: they have one peer.
  StreamRations& streamRations() { return streamRations_; }

 private:
  StreamRations streamRations_;
};

}  // namespace braid
