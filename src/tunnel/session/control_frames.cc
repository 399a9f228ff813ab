#include "tunnel/session/control_frames.h"

namespace braid {

namespace {
/// A datagram must have this much room for a control frame to be tried, in bytes. Larger frames
/// need more, see roomFor().
constexpr size_t kFrameRoom = 24;

/// Bytes of room that this frame needs.
size_t roomFor(const ControlFrame& frame) {
  auto largest = []<typename F>(const F&) { return std::max(kFrameRoom, kFrame<F>.largest); };
  return std::visit(largest, frame);
}
}  // namespace

void ControlFrames::say(const ControlFrame& frame, uint8_t on) {
  std::vector<Entry*>& words = words_[frame.index()];
  if (words.size() <= on) words.resize(on + size_t{1});
  if (words[on]) erase(*words[on]);
  words[on] = &push(frame);
  words[on]->word = on;
}

ControlFrames::Entry& ControlFrames::push(const ControlFrame& frame) {
  Entry& entry = *entries_.take();
  entry = Entry{};
  entry.frame = frame;
  waiting_.pushBack(entry);
  return entry;
}

void ControlFrames::erase(Entry& entry) {
  List& list = entry.inFlight ? carriedBy(entry.subflow, entry.packetNumber) : waiting_;
  list.erase(entry);
  if (entry.word) words_[entry.frame.index()][*entry.word] = nullptr;
  entries_.give(&entry);
}

// Packet numbers of a subflow are consecutive, so that each list holds the frames of few packets.
ControlFrames::List& ControlFrames::carriedBy(SubflowId subflow, PacketNumber packetNumber) {
  return inFlight_[(packetNumber.value() + subflow.value() * 8u) % inFlight_.size()];
}

void ControlFrames::write(DatagramBuilder& build) {
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

void ControlFrames::onFate(SubflowId subflow, PacketNumber packetNumber, bool delivered) {
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
