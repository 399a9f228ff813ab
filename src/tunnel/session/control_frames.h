#pragma once

// Control frames that must arrive: each is sent again until a packet with it has been acknowledged.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/intrusive_list.h"
#include "base/stock.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/wire/frame_traits.h"

namespace braid {

/// The frames of one session, in the order in which they came. A frame waits, is written to a datagram and is in
/// flight then, and waits again when that datagram is lost. What happens to one takes the same time however many there
/// are: the peer has a say in when they are lost.
class ControlFrames {
 public:
  /// With so many frames, waiting or in flight, none is added but words, of which there is one of a kind. Ours.
  static constexpr size_t kMost = 512;

  bool isFull() const { return entries_.inUse() >= kMost; }
  /// So many that only what cannot wait should come, too.
  bool isCrowded() const { return entries_.inUse() >= kMost / 2; }
  bool empty() const { return entries_.inUse() == 0; }
  /// Whether a frame is to be sent (again).
  bool isWaiting() const { return !waiting_.empty(); }
  /// One more, beside what there is; dropped when isFull().
  void add(const ControlFrame& frame) {
    if (!isFull()) push(frame);
  }
  /// A word on a subflow: takes the place of an older one of its kind on that subflow, and finds room always. The peer
  /// would act on the older one for ever.
  template <typename F>
  void announce(const F& frame) {
    say(frame, frame.subflow.value());
  }
  /// A word on the session: takes the place of an older one of its kind, and finds room always.
  template <typename F>
  void replace(const F& frame) {
    say(frame, 0);
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
    std::optional<uint8_t> word;  ///< its place in words_ of its kind, when it is one
    bool inFlight = false;
    SubflowId subflow{};  ///< and number of the packet that carries it
    PacketNumber packetNumber{};
    ListLink<Entry> link;
  };
  using List = IntrusiveList<Entry, &Entry::link>;

  void say(const ControlFrame& frame, uint8_t on);
  Entry& push(const ControlFrame& frame);
  void erase(Entry& entry);
  List& carriedBy(SubflowId subflow, PacketNumber packetNumber);

  Stock<Entry, 8> entries_;  // few: most sessions have one or two at a time
  List waiting_;
  std::array<List, 64> inFlight_;  ///< by packet, see carriedBy()
  /// By kind and subflow, as far as subflows have had one.
  std::array<std::vector<Entry*>, std::variant_size_v<ControlFrame>> words_;
  uint64_t sequence_ = 0;
};

}  // namespace braid
