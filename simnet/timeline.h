#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/time.h"

namespace braid::sim {

/// Virtual time: what happens when. Nothing reads a clock; calls for the same moment keep their order.
class Timeline {
 public:
  explicit Timeline(uint64_t seed) : random_(seed) {}

  Time now() const { return now_; }
  Random& random() { return random_; }
  /// Calls f at that time, or after so long.
  void at(Time when, std::function<void()> f) {
    timers_.push({std::max(when, now_), timerOrder_++, std::move(f)});
  }
  void after(Duration d, std::function<void()> f) { at(now_ + d, std::move(f)); }

 protected:
  Time nextTimer() const { return timers_.empty() ? kNever : timers_.top().when; }
  void runTimers() {
    while (nextTimer() <= now_) {
      std::function<void()> f = std::move(const_cast<Timer&>(timers_.top()).f);
      timers_.pop();
      f();
    }
  }
  /// Everything until then happens.
  void runUntil(Time end) {
    while (nextTimer() <= end) {
      now_ = nextTimer();
      runTimers();
    }
    now_ = end;
  }
  Time now_{1s};

 private:
  struct Timer {
    Time when;
    uint64_t order;
    std::function<void()> f;
    bool operator<(const Timer& b) const { return when != b.when ? when > b.when : order > b.order; }
  };
  Random random_;
  std::priority_queue<Timer> timers_;
  uint64_t timerOrder_ = 0;
};

}  // namespace braid::sim
