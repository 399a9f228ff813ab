#pragma once

#include <string>
#include <vector>

#include "tunnel/session/peer_events.h"

namespace braid {

/// Records the events of a peer.
class KeptEvents {
 public:
  /// The object to which events are reported.
  PeerEvents& in() { return in_; }
  /// All events reported until now.
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
