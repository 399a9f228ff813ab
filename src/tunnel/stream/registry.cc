#include "tunnel/stream/registry.h"

#include <utility>

namespace braid {

StreamHandle StreamRegistry::add(Stream& stream) {
  if (free_.empty()) {
    free_.reserve(slots_.size() + 1);
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  uint32_t place = free_.back();
  free_.pop_back();
  slots_[place].stream = &stream;
  return {place, slots_[place].generation};
}

const StreamRegistry::Slot* StreamRegistry::slotOf(StreamHandle handle) const {
  if (!handle || handle.place >= slots_.size()) return nullptr;
  const Slot& slot = slots_[handle.place];
  return slot.generation == handle.generation ? &slot : nullptr;
}

void StreamRegistry::queue(uint32_t place) {
  Slot& slot = slots_[place];
  if (slot.queued) return;
  slot.queued = true;
  ready_.pushBack(std::move(place));
}

void StreamRegistry::announce(StreamHandle handle, uint32_t session) {
  if (!find(handle)) return;
  announced_[session].pushBack(uint32_t{handle.place});
  Slot& slot = slots_[handle.place];
  slot.next.opened = slot.queued = true;
}

void StreamRegistry::tell(StreamHandle handle, bool StreamEvent::*what) {
  if (!find(handle)) return;
  slots_[handle.place].next.*what = true;
  queue(handle.place);
}

void StreamRegistry::end(StreamHandle handle, std::optional<StreamCause> reset) {
  if (!find(handle)) return;
  Slot& slot = slots_[handle.place];
  slot.stream = nullptr;
  slot.next = {.stream = {},
               .opened = slot.next.opened,
               .answered = slot.next.answered,
               .done = !reset,
               .reset = reset};
  queue(handle.place);
}

// A place that is still queued is freed when it is polled.
void StreamRegistry::release(StreamHandle handle) {
  if (!slotOf(handle)) return;
  Slot& slot = slots_[handle.place];
  slot.stream = nullptr;
  slot.next = {};
  if (!slot.queued) free(handle.place);
}

void StreamRegistry::free(uint32_t place) {
  Slot& slot = slots_[place];
  uint32_t generation = slot.generation + 1;
  slot = Slot{};
  slot.generation = generation ? generation : 1;
  free_.push_back(place);
}

// Takes the next place that has something to tell.
bool StreamRegistry::take(uint32_t& place) {
  if (!ready_.empty()) {
    place = ready_.front();
    ready_.popFront();
    return true;
  }
  while (!announced_.empty()) {
    auto turn = announced_.upper_bound(turn_);
    if (turn == announced_.end()) turn = announced_.begin();
    if (turn->second.empty()) {
      announced_.erase(turn);
      continue;
    }
    turn_ = turn->first;
    place = turn->second.front();
    turn->second.popFront();
    return true;
  }
  return false;
}

bool StreamRegistry::poll(StreamEvent& out) {
  for (uint32_t place = 0; take(place);) {
    Slot& slot = slots_[place];
    slot.queued = false;
    out = std::exchange(slot.next, {});
    out.stream = {place, slot.generation};
    bool hasEnded = out.done || out.reset;
    bool isReleased = !slot.stream && !hasEnded;
    bool isUnheardOf = out.opened && hasEnded;
    if (!slot.stream) free(place);
    // The driver need not know of a stream that began and ended since the last poll.
    if (!isReleased && !isUnheardOf) return true;
  }
  return false;
}

}  // namespace braid
