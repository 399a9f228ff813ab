#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace braid {

/// How the round-trip time of one subflow went up and down: its mean in each of the last intervals. Subflows
/// that queue at the same bottleneck go up and down together. Intervals as in RFC 8382, whose measures
/// docs/fidelity.md compares with this one. O(1) a sample, 500 bytes.
class DelaySeries {
 public:
  /// T and N (RFC 8382 section 2.2). All subflows' intervals begin together.
  static constexpr Duration kInterval = 350ms;
  static constexpr size_t kIntervals = 50;
  /// M (section 2.2): fewer intervals that both measured say nothing.
  static constexpr size_t kCommon = 30;
  /// No decision before so many intervals were measured: 2 * M (section 3.3.2).
  static constexpr uint64_t kWarmUp = 2 * kCommon;
  /// Ours: an interval with fewer samples measures nothing; a subflow that measured nothing in so many of the
  /// newest intervals is idle.
  static constexpr uint32_t kMinSamples = 5;
  static constexpr size_t kIdle = 6;

  /// A round-trip time, above 0. `now` must not go back. Leave out what was measured while the application
  /// limited the sender: that is the path's delay, not its bottleneck's.
  void onSample(Duration rtt, Time now);
  /// Ends the intervals that are over.
  void advance(Time now);
  /// Another path.
  void reset() { *this = {}; }

  /// kWarmUp is over, and it is not idle.
  bool ready() const;

  /// How much alike two subflows went up and down: Pearson's coefficient over the intervals that both
  /// measured, [-1, 1]. 0 when these are fewer than kCommon.
  friend double correlation(const DelaySeries& a, const DelaySeries& b);

 private:
  void close();
  /// Mean of an interval, ns; `age` 0 is the newest. 0: nothing was measured.
  double mean(size_t age) const { return means_[(newest_ + kIntervals - age) % kIntervals]; }

  std::array<double, kIntervals> means_{};
  size_t newest_ = 0;
  Time end_{};            // of the interval that runs
  double sum_ = 0;        // of its samples, ns
  uint32_t samples_ = 0;  // their number
  uint64_t measured_ = 0;
};

/// One of the subflows that may share bottlenecks.
struct BottleneckUser {
  DelaySeries delays;
  size_t bottleneck = 0;  ///< the same number: the same bottleneck; 0: not known
  size_t sharing = 1;     ///< how many users it has, this one included
  size_t before = 0;      ///< `bottleneck` before this was so
};

/// Least correlation() of two subflows to be put together, and of two that are together to stay so. Ours,
/// chosen by tests/sim/shared_bottleneck_test.cc on other seeds.
inline constexpr double kJoinCorrelation = 0.9;
inline constexpr double kStayCorrelation = 0.7;

/// Decides anew who shares a bottleneck, once per interval, with the intervals of all ended.
void groupByBottleneck(std::span<BottleneckUser*> users);

}  // namespace braid
