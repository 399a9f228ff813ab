#pragma once

#include <string>
#include <vector>

#include "tunnel/session/peer_events.h"

namespace braid {

/// Keeps what a peer's events are.
class KeptEvents {
 public:
  /// For who tells.
  PeerEvents& in() { return in_; }
  /// All that were told so far.
  const std::vector<Event>& all() {
    for (Event event; queue_.poll(event);) all_.push_back(event);
    return all_;
  }

 private:
  EventQueue queue_;
  std::string name_ = "peer";
  PeerEvents in_{queue_, name_};
  std::vector<Event> all_;
};

}  // namespace braid
