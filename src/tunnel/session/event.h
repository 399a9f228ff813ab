#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "base/time.h"

namespace braid {

/// Something worth a log line.
struct Event {
  enum class Kind : uint8_t {
    kPeerUp,
    kPeerDown,
    kPeerInUse,     ///< of a group: it took over from a peer that works
    kPeerReplaced,  ///< of a group: it took over from a peer that does not answer
    kHandshakeFailed,
    kSubflowUp,
    kSubflowSuspect,
    kSubflowFailed,
    kSubflowRole,
    kCapReached,
    kNewPeriod,
    kAddressChanged,
    kForgedAck,
    kRekeyed,
    kInnerMtu,
    kDirect,  ///< of the gateway: packets take the host's own routes, past the tunnel
    kRouted   ///< of the gateway: they take the tunnel again
  };
  Kind kind;
  std::string peer;
  std::string text;  ///< one line for the log
  /// The peer's path that it is about: see Subflow::pathName().
  std::string path = {};
  Duration ago{};  ///< how long ago it began, when it is told
};

/// The events of a tunnel, in the order in which they happened, until the driver polls them.
class EventQueue {
 public:
  /// Maximum number of events that wait; later ones are lost.
  static constexpr size_t kMost = 1024;

  void push(Event event) {
    if (events_.size() < kMost) events_.push_back(std::move(event));
  }
  /// The oldest event; false when there is none.
  bool poll(Event& out) {
    if (events_.empty()) return false;
    out = std::move(events_.front());
    events_.pop_front();
    return true;
  }

 private:
  std::deque<Event> events_;
};

}  // namespace braid
