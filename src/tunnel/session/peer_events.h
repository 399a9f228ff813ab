#pragma once

// What a session passes to its owner, and what all sessions of an owner share.

#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/session/event.h"
#include "tunnel/stream/limits.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// Reports what happens to one peer and its sessions, as lines with the peer's name in the tunnel's
/// event queue.
class PeerEvents {
 public:
  /// `queue` and `peer`, the peer's name, must outlive this object.
  PeerEvents(EventQueue& queue, const std::string& peer) : queue_(queue), peer_(peer) {}

  void tell(Event::Kind kind, std::string text) { queue_.push({kind, peer_, std::move(text)}); }
  /// Reports a line such as "wifi (192.0.2.1:4433) is in use", where "is in use" is `what`.
  void tell(Event::Kind kind, const Subflow& subflow, const char* what) {
    const std::string& uplink = subflow.uplink();
    std::string name = uplink.empty() ? "subflow " + std::to_string(subflow.id().value()) : uplink;
    std::string remote = subflow.route().remote.toString();
    std::string text = name + " (" + remote + ") " + what;
    queue_.push({kind, peer_, std::move(text), uplink.empty() ? remote : uplink});
  }

 private:
  EventQueue& queue_;
  const std::string& peer_;
};

/// The owner of sessions. These methods are called at once instead of polled, because what the
/// owner does with a packet depends on the session at that moment (it writes the inner MTU into
/// TCP's MSS option), and because a packet that is too large or dropped no longer exists after the
/// call.
class SessionOwner : public DropObserver {
 public:
  /// An inner packet arrived, in the order of its flow.
  virtual void onDelivered(Packet packet) = 0;
  /// A queued or sent packet is too large for every path that is left: worth an ICMP "too big"
  /// error.
  virtual void onTooLarge(ByteView packet) = 0;
  /// An inner packet that has not reached the peer, as far as the session knows
  /// (Session::handBack).
  virtual void onHandedBack(Packet) {}
  /// Shared by all sessions of this owner, because they all belong to one peer.
  StreamRateLimits& streamRations() { return streamRations_; }

 private:
  StreamRateLimits streamRations_;
};

}  // namespace braid
