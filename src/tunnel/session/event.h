#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace braid {

/// Something worth a log line.
struct Event {
  enum class Kind : uint8_t {
    kPeerUp,
    kPeerDown,
    kPeerInUse,     ///< of a group; in place of one that works
    kPeerReplaced,  ///< the same in place of one that does not answer
    kHandshakeFailed,
    kSubflowUp,
    kSubflowSuspect,
    kSubflowFailed,
    kSubflowDuty,
    kCapReached,
    kNewPeriod,
    kAddressChanged,
    kForgedAck,
    kRekeyed,
    kInnerMtu
  };
  Kind kind;
  std::string peer;
  std::string text;  ///< one line in plain words
  std::string path =
      {};  ///< which of the peer's paths it is about: the uplink, else the remote address and port
};

/// The events of a tunnel, in the order in which things happened, until the driver polls them.
class EventQueue {
 public:
  /// Events that wait; later ones are lost. Ours.
  static constexpr size_t kMost = 1024;

  void push(Event event) {
    if (events_.size() < kMost) events_.push_back(std::move(event));
  }
  /// The oldest one; false when there is none.
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
