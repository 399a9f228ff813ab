#pragma once

// What a session tells its owner.

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/drop.h"
#include "base/packet.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/session/event.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// Called at once and not polled: what the owner does with a packet depends on the session as it is at that
/// moment (it writes the inner MTU into TCP's MSS option), and a packet that is too large or thrown away is gone
/// after the call.
class SessionOwner : public DropObserver {
 public:
  /// An inner packet arrived, in the order of its flow.
  virtual void onDelivered(Packet packet) = 0;
  virtual void onEvent(Event event) = 0;
  virtual void onDrop(Drop cause, uint64_t count) = 0;
  /// A queued or sent packet is too large for every path that is left: worth a "too big".
  virtual void onTooLarge(ByteView packet) = 0;
};

/// "wifi (192.0.2.1:4433) `what`".
inline Event eventOf(const Subflow& subflow, Event::Kind kind, const char* what) {
  std::string name =
      subflow.uplink().empty() ? "subflow " + std::to_string(subflow.id().value()) : subflow.uplink();
  return {kind, {}, name + " (" + subflow.route().remote.toString() + ") " + what};
}

}  // namespace braid
