#pragma once

// Control frames that must arrive: each is sent again until a packet with it has been acknowledged.

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/wire/frame_traits.h"

namespace braid {

/// The frames of one session, in the order in which they came. A frame waits, is written to a datagram and is in
/// flight then, and waits again when that datagram is lost.
class ControlFrames {
 public:
  /// Frames kept at most, waiting or in flight. Ours.
  static constexpr size_t kMost = 512;
  /// And kinds of which there is one at a time, see replace().
  static constexpr size_t kReplaced = 2;

  ControlFrames() { entries_.reserve(kMost + kReplaced); }

  bool isFull() const { return entries_.size() >= kMost; }
  bool empty() const { return entries_.empty(); }
  /// Whether a frame is to be sent (again).
  bool isWaiting() const;
  /// One more, beside what there is; dropped when isFull().
  void add(const ControlFrame& frame);
  /// What is said of a subflow; takes the place of an older word of its kind on that subflow.
  template <typename F>
  void announce(const F& frame) {
    std::erase_if(entries_, [&](const Entry& e) {
      const F* older = std::get_if<F>(&e.frame);
      return older && older->subflow == frame.subflow;
    });
    add(frame);
  }
  /// Takes the place of older words of its kind, and finds room always: there is one of each kind.
  template <typename F>
  void replace(const F& frame) {
    std::erase_if(entries_, [](const Entry& e) { return std::holds_alternative<F>(e.frame); });
    entries_.push_back({frame});
  }
  /// The sequence number of the next word on a subflow: the largest one counts. From 1 on.
  uint64_t takeSequence() { return ++sequence_; }

  /// Writes what waits, as far as it fits; it is in flight with that packet then.
  void write(DatagramBuilder& build);
  /// The packet with control frames has arrived, or is lost.
  void onFate(SubflowId subflow, PacketNumber packetNumber, bool delivered);

 private:
  struct Entry {
    ControlFrame frame;
    bool inFlight = false;
    SubflowId subflow{};  ///< and number of the packet that carries it
    PacketNumber packetNumber{};
  };
  std::vector<Entry> entries_;
  uint64_t sequence_ = 0;
};

}  // namespace braid
