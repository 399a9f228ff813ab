#pragma once

// What the sessions of a peer report to the operator.

#include <string>
#include <utility>

#include "tunnel/session/event.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// Reports what happens to one peer and its sessions, as lines with the peer's name in the tunnel's
/// event queue.
class PeerEvents {
 public:
  /// `queue` and `peer`, the peer's name, must outlive this object.
  PeerEvents(EventQueue& queue, const std::string& peer) : queue_(queue), peer_(peer) {}

  void tell(Event::Kind kind, std::string text) { queue_.push({kind, peer_, std::move(text)}); }
  /// Reports a line such as "wifi (192.0.2.1:4433) is in use", where "is in use" is `what`. It
  /// began `ago` before.
  void tell(Event::Kind kind, const Subflow& subflow, const char* what, Duration ago = {}) {
    std::string name = subflow.name();
    if (name.empty()) name = "subflow " + std::to_string(subflow.id().value());
    std::string text = name + " (" + subflow.route().remote.toString() + ") " + what;
    queue_.push({kind, peer_, std::move(text), subflow.pathName(), ago});
  }

 private:
  EventQueue& queue_;
  const std::string& peer_;
};

}  // namespace braid
