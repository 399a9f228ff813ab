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

/// Virtual time and its timer queue. Nothing reads a real clock. Calls scheduled for the same
/// moment run in the order in which they were scheduled.
class Timeline {
 public:
  explicit Timeline(uint64_t seed) : random_(seed) {}

  Time now() const { return now_; }
  Random& random() { return random_; }
  /// Calls f at time `when` (at once if that has passed); after() calls it after the duration `d`.
  void at(Time when, std::function<void()> f) {
    uint32_t slot = static_cast<uint32_t>(calls_.size());
    if (free_.empty()) {
      calls_.push_back(std::move(f));
    } else {
      slot = free_.back();
      free_.pop_back();
      calls_[slot] = std::move(f);
    }
    timers_.push({std::max(when, now_), timerOrder_++, slot});
  }
  void after(Duration d, std::function<void()> f) { at(now_ + d, std::move(f)); }

 protected:
  Time nextTimer() const { return timers_.empty() ? kNever : timers_.top().when; }
  void runTimers() {
    while (nextTimer() <= now_) {
      uint32_t slot = timers_.top().slot;
      timers_.pop();
      std::function<void()> f = std::move(calls_[slot]);
      free_.push_back(slot);
      f();
    }
  }
  Time now_{1s};

 private:
  struct Timer {
    Time when;
    uint64_t order;
    uint32_t slot;  // of calls_
    bool operator<(const Timer& b) const {
      return when != b.when ? when > b.when : order > b.order;
    }
  };
  Random random_;
  std::priority_queue<Timer> timers_;
  // kept outside the heap, which moves its entries often
  std::vector<std::function<void()>> calls_;
  std::vector<uint32_t> free_;  // slots without a call
  uint64_t timerOrder_ = 0;
};

/// A timeline without gateways: only timers run.
class Simulation : public Timeline {
 public:
  using Timeline::Timeline;
  /// Runs all timers of the next `d` of virtual time.
  void run(Duration d) {
    Time end = now_ + d;
    while (nextTimer() <= end) {
      now_ = std::max(now_, nextTimer());
      runTimers();
    }
    now_ = end;
  }
};

}  // namespace braid::sim
