#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/huge_array.h"
#include "base/time.h"

namespace braid {

/// One timer for each of a fixed number of small ids: arm, cancel and expiry are O(1) whatever the number of
/// timers (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7: levels of 64
/// slots; a timer moves down a level as its time comes near, at most three times).
///
/// A timer never fires early, and at most one tick late if advance() is called at nextDeadline(). What lies
/// beyond the horizon fires at the horizon: users look at their own deadline when a timer fires.
class TimerWheel {
 public:
  static constexpr size_t kLevels = 4;
  static constexpr size_t kSlots = 64;
  static constexpr Duration kDefaultTick = 250us;
  /// Ticks to the farthest slot: 69 minutes with the default tick.
  static constexpr uint32_t kHorizon = kSlots * kSlots * kSlots * (kSlots - 1);

  explicit TimerWheel(size_t timers, Duration tick = kDefaultTick);

  Duration tick() const { return tick_; }
  /// Sets the timer of `id` to fire at `at` or as soon after it as a tick allows, instead of when it was set.
  void arm(uint32_t id, Time at);
  /// arm(), unless the timer of `id` is set for that time or an earlier one.
  void armEarlier(uint32_t id, Time at);
  void cancel(uint32_t id);
  bool isArmed(uint32_t id) const { return nodes_[id].slot != kNone16; }
  size_t armed() const { return armed_; }
  /// When advance() has something to do, which may be no more than to move timers down; kNever for none.
  Time nextDeadline() const;

  /// Moves on to `now` and calls expire(id) for every timer whose time has come; the timer is no longer armed then.
  /// expire() may arm and cancel any timer. A `now` before an earlier one does nothing.
  template <typename F>
  void advance(Time now, F&& expire) {
    uint64_t target = now.time_since_epoch() < Duration(0) ? 0 : tickBefore(now);
    while (now_ < target) {
      uint64_t next = nextEvent();
      now_ = next < target ? next : target;
      if (next > target) return;
      for (size_t level = kLevels - 1; level > 0; --level) cascade(level);
      uint32_t& head = heads_[now_ % kSlots];
      while (head != kNone) {
        uint32_t id = head;
        unlink(id);
        expire(id);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint16_t kNone16 = UINT16_MAX;
  struct Node {
    uint32_t next = kNone;
    uint32_t prev = kNone;  // kNone: the first of its slot
    uint32_t tick = 0;      // low bits; all timers lie within the horizon
    uint16_t slot = kNone16;
  };

 public:
  static constexpr size_t kBytesPerTimer = sizeof(Node);

 private:
  uint32_t tickOf(Time at) const;
  uint64_t tickBefore(Time t) const { return static_cast<uint64_t>(t.time_since_epoch() / tick_); }
  uint64_t nextEvent() const;
  void insert(uint32_t id);
  void unlink(uint32_t id);
  void cascade(size_t level);

  Duration tick_;
  uint64_t now_ = 0;  // in ticks; all timers of ticks up to it have fired
  size_t armed_ = 0;
  HugeArray<Node> nodes_;
  std::array<uint32_t, kLevels * kSlots> heads_;
  std::array<uint64_t, kLevels> occupied_{};  // a bit per slot
};

}  // namespace braid
