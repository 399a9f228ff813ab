#include "base/timers.h"

#include <algorithm>
#include <bit>

namespace braid {

namespace {
constexpr unsigned kSlotBits = 6;
static_assert(size_t{1} << kSlotBits == TimerWheel::kSlots);

constexpr unsigned shiftOf(size_t level) {
  return static_cast<unsigned>(level) * kSlotBits;
}
}  // namespace

TimerWheel::TimerWheel(size_t timers, Duration tick) : tick_(tick), nodes_(timers) {
  heads_.fill(kNone);
}

// The low bits of the first tick at or after `at` that has not passed yet, limited to the horizon.
uint32_t TimerWheel::tickOf(Time at) const {
  uint64_t tick = at.time_since_epoch() <= Duration(0) ? 0 : tickBefore(at - Duration(1)) + 1;
  return static_cast<uint32_t>(std::clamp(tick, now_ + 1, now_ + kHorizon));
}

void TimerWheel::arm(uint32_t id, Time at) {
  if (isArmed(id)) unlink(id);
  nodes_[id].tick = tickOf(at);
  insert(id);
}

void TimerWheel::armEarlier(uint32_t id, Time at) {
  auto now = static_cast<uint32_t>(now_);
  if (!isArmed(id) || tickOf(at) - now < nodes_[id].tick - now) arm(id, at);
}

void TimerWheel::cancel(uint32_t id) {
  if (isArmed(id)) unlink(id);
}

Time TimerWheel::nextDeadline() const {
  if (armed_ == 0) return kNever;
  return Time(tick_ * static_cast<int64_t>(nextEvent()));
}

// The next tick at which a slot of level 0 fires, or a slot of a higher level must be moved down.
uint64_t TimerWheel::nextEvent() const {
  uint64_t best = UINT64_MAX;
  for (size_t level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    uint64_t here = now_ >> shiftOf(level);
    // After the rotation, bit 0 is the slot after the present one. The present slot comes last: its
    // timers are a whole revolution away.
    uint64_t ahead = std::rotr(occupied_[level], static_cast<int>((here + 1) % kSlots));
    uint64_t distance = static_cast<uint64_t>(std::countr_zero(ahead)) + 1;
    best = std::min(best, (here + distance) << shiftOf(level));
  }
  return best;
}

void TimerWheel::insert(uint32_t id) {
  Node& node = nodes_[id];
  uint32_t distance = node.tick - static_cast<uint32_t>(now_);
  size_t level = distance == 0 ? 0 : static_cast<size_t>(std::bit_width(distance) - 1) / kSlotBits;
  uint64_t tick = now_ + distance;
  size_t index = (tick >> shiftOf(level)) % kSlots;
  node.slot = static_cast<uint16_t>(level * kSlots + index);
  uint32_t& head = heads_[node.slot];
  node.prev = kNone;
  node.next = head;
  if (head != kNone) nodes_[head].prev = id;
  head = id;
  occupied_[level] |= uint64_t{1} << index;
  ++armed_;
}

void TimerWheel::unlink(uint32_t id) {
  Node& node = nodes_[id];
  if (node.next != kNone) nodes_[node.next].prev = node.prev;
  (node.prev != kNone ? nodes_[node.prev].next : heads_[node.slot]) = node.next;
  if (heads_[node.slot] == kNone)
    occupied_[node.slot / kSlots] &= ~(uint64_t{1} << node.slot % kSlots);
  node.slot = kNone16;
  --armed_;
}

// If a slot of `level` begins at now_, moves its timers to lower levels.
void TimerWheel::cascade(size_t level) {
  if (now_ & ((uint64_t{1} << shiftOf(level)) - 1)) return;
  uint32_t& head = heads_[level * kSlots + (now_ >> shiftOf(level)) % kSlots];
  while (head != kNone) {
    uint32_t id = head;
    unlink(id);
    insert(id);
  }
}

}  // namespace braid
