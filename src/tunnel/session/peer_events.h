#pragma once

#include <string>
#include <utility>

#include "tunnel/session/event.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// What happens to one peer and its sessions, as lines with the peer's name in the tunnel's queue.
class PeerEvents {
 public:
  /// `queue` and `peer`, the name, must outlive this object.
  PeerEvents(EventQueue& queue, const std::string& peer) : queue_(queue), peer_(peer) {}

  void tell(Event::Kind kind, std::string text) { queue_.push({kind, peer_, std::move(text)}); }
  /// "wifi (192.0.2.1:4433) `what`".
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

}  // namespace braid
