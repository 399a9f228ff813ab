#include "tunnel/session/control_frames.h"

#include <algorithm>

namespace braid {

namespace {
/// Room that is asked for a control frame that is not larger, bytes. Ours.
constexpr size_t kFrameRoom = 24;

/// Room that is asked for this one.
size_t roomFor(const ControlFrame& frame) {
  auto largest = []<typename F>(const F&) { return std::max(kFrameRoom, kFrame<F>.largest); };
  return std::visit(largest, frame);
}
}  // namespace

bool ControlFrames::isWaiting() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.inFlight; });
}

void ControlFrames::add(const ControlFrame& frame) {
  if (!isFull()) entries_.push_back({frame});
}

void ControlFrames::write(DatagramBuilder& build) {
  for (Entry& e : entries_) {
    if (e.inFlight || !build.fitsControl(roomFor(e.frame))) continue;
    std::visit([&](const auto& frame) { build.addControl(frame); }, e.frame);
    e.inFlight = true;
    e.subflow = build.subflow().id();
    e.packetNumber = build.packetNumber();
  }
}

void ControlFrames::onFate(SubflowId subflow, PacketNumber packetNumber, bool delivered) {
  auto carried = [&](const Entry& e) {
    return e.inFlight && e.subflow == subflow && e.packetNumber == packetNumber;
  };
  if (delivered) {
    std::erase_if(entries_, carried);
  } else {
    for (Entry& e : entries_) {
      if (carried(e)) e.inFlight = false;
    }
  }
}

}  // namespace braid
