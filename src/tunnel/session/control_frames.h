#pragma once

// Control frames that must arrive: each is resent until a packet with it has been acknowledged.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/containers.h"
#include "base/memory.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/wire/frame_table.h"

namespace braid {

/// The control frames of one session, in the order in which they were added. A frame waits, is
/// written to a datagram, is in flight with it, and waits again when that datagram is lost. The
/// cost of an operation on one frame does not grow with the number of frames, because the peer
/// influences when they are lost.
class ControlFrames {
 public:
  /// Maximum number of frames that add() accepts, waiting and in flight together. announce() and
  /// replace() may exceed it: of their frames there is at most one of each kind, per subflow or per
  /// session.
  static constexpr size_t kMost = 512;

  bool isFull() const { return entries_.inUse() >= kMost; }
  /// Half of kMost is used: callers should add only frames that cannot wait.
  bool isCrowded() const { return entries_.inUse() >= kMost / 2; }
  bool empty() const { return entries_.inUse() == 0; }
  /// Whether a frame is to be sent (again).
  bool isWaiting() const { return !waiting_.empty(); }
  /// Adds a frame beside those that are there; drops it when isFull().
  void add(const ControlFrame& frame) {
    if (!isFull()) push(frame);
  }
  /// Adds a frame about a subflow, which replaces an older one of its kind about that subflow. It
  /// is added even when isFull(): otherwise the peer would act on the older one forever.
  template <typename F>
  void announce(const F& frame) {
    say(frame, frame.subflow.value());
  }
  /// Adds a frame about the session, which replaces an older one of its kind, even when isFull().
  template <typename F>
  void replace(const F& frame) {
    say(frame, 0);
  }
  /// The sequence number for the next announced frame: the peer obeys the one with the largest
  /// number. Starts at 1.
  uint64_t takeSequence() { return ++sequence_; }

  /// Writes the waiting frames that fit; they are then in flight with that packet.
  void write(DatagramBuilder& build);
  /// A packet with control frames has arrived (`delivered`) or is lost.
  void onFate(SubflowId subflow, PacketNumber packetNumber, bool delivered);

 private:
  /// A datagram must have this much room for a control frame to be tried, in bytes. Larger frames
  /// need more, see roomFor().
  static constexpr size_t kFrameRoom = 24;

  /// Bytes of room that this frame needs.
  static size_t roomFor(const ControlFrame& frame) {
    auto largest = []<typename F>(const F&) { return std::max(kFrameRoom, kFrame<F>.largest); };
    return std::visit(largest, frame);
  }

  struct Entry {
    ControlFrame frame;
    std::optional<uint8_t> word;  ///< set for announce() and replace(): index in words_ of its kind
    bool inFlight = false;
    SubflowId subflow{};  ///< with packetNumber: the packet that carries it, while inFlight
    PacketNumber packetNumber{};
    ListLink<Entry> link;
  };
  using List = IntrusiveList<Entry, &Entry::link>;

  void say(const ControlFrame& frame, uint8_t on);
  Entry& push(const ControlFrame& frame);
  void erase(Entry& entry);
  List& carriedBy(SubflowId subflow, PacketNumber packetNumber);

  ObjectPool<Entry, 8> entries_;  // most sessions have one or two at a time
  List waiting_;
  std::array<List, 64> inFlight_;  ///< hashed by packet, see carriedBy()
  /// The frames of announce() and replace(), by kind, then by subflow (0 for replace()).
  std::array<std::vector<Entry*>, std::variant_size_v<ControlFrame>> words_;
  uint64_t sequence_ = 0;
};

inline void ControlFrames::say(const ControlFrame& frame, uint8_t on) {
  std::vector<Entry*>& words = words_[frame.index()];
  if (words.size() <= on) words.resize(on + size_t{1});
  if (words[on]) erase(*words[on]);
  words[on] = &push(frame);
  words[on]->word = on;
}

inline ControlFrames::Entry& ControlFrames::push(const ControlFrame& frame) {
  Entry& entry = *entries_.take();
  entry = Entry{};
  entry.frame = frame;
  waiting_.pushBack(entry);
  return entry;
}

inline void ControlFrames::erase(Entry& entry) {
  List& list = entry.inFlight ? carriedBy(entry.subflow, entry.packetNumber) : waiting_;
  list.erase(entry);
  if (entry.word) words_[entry.frame.index()][*entry.word] = nullptr;
  entries_.give(&entry);
}

// Packet numbers of a subflow are consecutive, so that each list holds the frames of few packets.
inline ControlFrames::List& ControlFrames::carriedBy(SubflowId subflow, PacketNumber packetNumber) {
  return inFlight_[(packetNumber.value() + subflow.value() * 8u) % inFlight_.size()];
}

inline void ControlFrames::write(DatagramBuilder& build) {
  for (Entry* next = waiting_.front(); Entry* entry = next;) {
    if (!build.fitsControl(kFrameRoom)) return;
    next = List::next(*entry);
    if (!build.fitsControl(roomFor(entry->frame))) continue;
    std::visit([&](const auto& frame) { build.addControl(frame); }, entry->frame);
    waiting_.erase(*entry);
    entry->inFlight = true;
    entry->subflow = build.subflow().id();
    entry->packetNumber = build.packetNumber();
    carriedBy(entry->subflow, entry->packetNumber).pushBack(*entry);
  }
}

inline void ControlFrames::onFate(SubflowId subflow, PacketNumber packetNumber, bool delivered) {
  List& list = carriedBy(subflow, packetNumber);
  for (Entry* next = list.front(); Entry* entry = next;) {
    next = List::next(*entry);
    if (entry->subflow != subflow || entry->packetNumber != packetNumber) continue;
    if (delivered) {
      erase(*entry);
    } else {
      list.erase(*entry);
      entry->inFlight = false;
      waiting_.pushBack(*entry);
    }
  }
}

}  // namespace braid
