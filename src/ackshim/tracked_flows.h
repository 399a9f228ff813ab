#pragma once

#include <algorithm>

#include "ackshim/flow_table.h"
#include "ackshim/options.h"
#include "ackshim/tail_cache.h"
#include "ackshim/trials.h"
#include "base/timer_wheel.h"

namespace braid {

/// The flows with what lives and dies with a proven one: its record, its timer, its kept packets and trials. The time
/// of the shim is kept here, too, because all stamps in these are of it.
class TrackedFlows {
 public:
  static constexpr uint32_t kNone = FlowTable::kNone;

  /// Takes the sizes of the options. `payload`: bytes of the largest packet kept; `seed` keys the hash.
  TrackedFlows(const AckShimOptions& options, size_t payload, uint64_t seed)
      : table_(options.maxFlows, options.maxHalfOpen, seed),
        wheel_(table_.capacity()),
        cache_(payload, options.cachePackets, options.cachePerFlow) {}

  /// Time never goes back.
  void forward(Time now) {
    now_ = std::max(now_, now);
    stamp_ = Stamp::of(now_);
  }
  Time now() const { return now_; }
  Stamp stamp() const { return stamp_; }

  FlowTable& table() { return table_; }
  const FlowTable& table() const { return table_; }
  TailCache& cache() { return cache_; }
  const TailCache& cache() const { return cache_; }
  Trials& trials() { return trials_; }
  ShimFlow& operator[](uint32_t i) { return table_[i]; }
  Troubles& troubles(const ShimFlow& flow) { return table_.troubles(flow); }

  /// Sets the timer of a proven flow, whatever it was set for.
  void arm(uint32_t i, Duration ahead) {
    table_[i].timerAt = stamp_ + ahead;
    wheel_.arm(i, now_ + ahead);
  }
  /// Lets it fire then, unless it fires before.
  void armIn(uint32_t i, Duration ahead) {
    ShimFlow& flow = table_[i];
    ahead = std::min(ahead, AckShimOptions::kMaxIdle);  // what a stamp can compare
    Stamp at = stamp_ + ahead;
    if (flow.timerAt - at <= Duration(0)) return;
    flow.timerAt = at;
    wheel_.armEarlier(i, now_ + ahead);
  }
  /// Forgets a proven flow with all that it has.
  void erase(uint32_t i) {
    cache_.clear(table_[i].inTail);
    cache_.clear(table_[i].outTail);
    wheel_.cancel(i);
    table_.erase(i);
  }

  Time nextDeadline() const { return wheel_.nextDeadline(); }
  /// Forgets flows that were idle for so long. For each other one whose timer fires, next(flow) does what is
  /// due and gives the time until something is due again.
  template <typename F>
  void onTimer(Duration idle, F&& next) {
    wheel_.advance(now_, [&](uint32_t i) {
      Duration left = idle - (stamp_ - table_[i].lastUse);
      if (left <= Duration(0)) return erase(i);
      arm(i, std::min(left, next(table_[i])));
    });
  }

 private:
  FlowTable table_;
  TimerWheel wheel_;
  TailCache cache_;
  Trials trials_;
  Time now_{};
  Stamp stamp_;  // now_
};

}  // namespace braid
