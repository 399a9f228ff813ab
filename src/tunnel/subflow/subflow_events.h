#pragma once

// What subflows have to tell their session.

#include <cstdint>
#include <utility>

#include "base/ring.h"
#include "tunnel/wire/numbers.h"

namespace braid {

struct SubflowEvent {
  enum class Kind : uint8_t {
    kState,             ///< the subflow has entered another state
    kAddress,           ///< the peer is proven to be at a new route
    kControlDelivered,  ///< the packet, which carries control frames, has arrived
    kControlLost,       ///< or most likely has not
    kPacketLost,        ///< the packet has been declared lost
  };
  Kind kind{};
  SubflowId subflow{};
  PacketNumber packetNumber{};
  double lossRate = 0;  ///< kPacketLost: share lost among the latest packets, this one included
};

/// One queue for all subflows of a session, in the order in which things happened. The session empties it after
/// each call that may change a subflow, so that it finds the subflow as the event left it.
class SubflowEvents {
 public:
  void push(SubflowEvent event) { queue_.pushBack(std::move(event)); }
  /// The oldest one; false when there is none.
  bool poll(SubflowEvent& out) {
    if (queue_.empty()) return false;
    out = queue_.front();
    queue_.popFront();
    return true;
  }

 private:
  Ring<SubflowEvent> queue_;
};

/// By which one subflow, or a part of it, tells: puts the subflow's number on each event.
class SubflowVoice {
 public:
  /// `events` must outlive it.
  SubflowVoice(SubflowId subflow, SubflowEvents& events) : subflow_(subflow), events_(events) {}
  void tell(SubflowEvent::Kind kind, PacketNumber pn = {}, double lossRate = 0) {
    events_.push({kind, subflow_, pn, lossRate});
  }

 private:
  SubflowId subflow_;
  SubflowEvents& events_;
};

}  // namespace braid
