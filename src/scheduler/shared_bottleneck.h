#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace braid {

/// The shape of a subflow's delay: alike for subflows that queue at the same bottleneck (RFC 8382 section 3).
struct DelayShape {
  bool bottleneck = false;  ///< it crosses one (section 3.3.1, step 1)
  double skew = 0;          ///< skew_est, [-1, 1]: share of samples below the mean less share above it
  double variability = 0;   ///< var_est: mean absolute deviation, seconds
  double frequency = 0;     ///< freq_est, [0, 1]: swings through the mean per interval
  double loss = 0;          ///< pkt_loss, [0, 1]
};

/// What the sender sees of one subflow's delay and loss, for shared bottleneck detection (RFC 8382 section
/// 3.2, with the enhancements of section 4). Round-trip times stand in for one-way delays. O(1) a sample;
/// one in each interval also pays for a pass over the kN that are kept. 2.5 KB.
class DelayStatistics {
 public:
  /// T, N, M and F (section 2.2): the base interval; how many of them frequency and loss are taken over, and
  /// how many skew and variability, of which the newest kF count fully. All subflows' intervals begin
  /// together.
  static constexpr Duration kInterval = 350ms;
  static constexpr size_t kN = 50;
  static constexpr size_t kM = 30;
  static constexpr size_t kF = 20;
  /// c_s, c_h, p_v (section 2.2).
  static constexpr double kSkew = 0.1;
  static constexpr double kSkewHysteresis = 0.3;
  static constexpr double kCrossing = 0.7;
  /// p_l. Ours, for the RFC has no value: well above what radio paths lose at random.
  static constexpr double kLoss = 0.1;
  /// No decision before so many intervals were measured (section 3.3.2).
  static constexpr uint64_t kWarmUp = 2 * kM;
  /// Ours: an interval with fewer samples measures nothing; a subflow that measured nothing in so many of the
  /// newest intervals is idle.
  static constexpr uint32_t kMinSamples = 5;
  static constexpr size_t kIdle = 6;

  /// A round-trip time, above 0. `now` must not go back. Leave out what was measured while the application
  /// limited the sender: that is the path's delay, not its bottleneck's.
  void onSample(Duration rtt, Time now);
  /// So much more was acknowledged and lost, packets or bytes.
  void onPackets(uint64_t acked, uint64_t lost, Time now);
  /// Ends the intervals that are over.
  void advance(Time now);
  /// Another path.
  void reset() { *this = {}; }

  /// Enough is known to compare it (kWarmUp, and kM of the newest kN intervals), and it is not idle.
  bool ready() const;
  const DelayShape& shape() const { return shape_; }

  /// How much alike the mean delays of two subflows went up and down in the newest kN intervals: Pearson's
  /// coefficient over those that both measured, [-1, 1]. 0 when these are fewer than kM.
  friend double correlation(const DelayStatistics& a, const DelayStatistics& b);

 private:
  struct Interval {
    double mean = 0;       // E_T(OWD), ns; a sum while the interval runs; 0: too few samples
    double deviation = 0;  // var_base_T, ns
    uint64_t acked = 0, lost = 0;
    uint32_t samples = 0;  // num_T(OWD): those in `skew` and `deviation`
    int32_t skew = 0;      // skew_base_T
    bool bottleneck = false;
    bool crossing = false;
  };
  Interval& at(size_t age) { return history_[(newest_ + kN - age) % kN]; }
  const Interval& at(size_t age) const { return history_[(newest_ + kN - age) % kN]; }
  void close();
  void summarise();
  void countCrossings();

  std::array<Interval, kN> history_{};
  size_t newest_ = 0;
  Interval now_;             // the one that runs
  Time end_{};               // its end
  uint64_t measured_ = 0;    // intervals since the beginning
  size_t recent_ = 0;        // the same, of the newest kN
  double meanDelay_ = 0;     // mean_delay, ns; 0: not known
  double previousMean_ = 0;  // of the last interval that measured something, ns
  int side_ = 0;             // of mean_delay where a mean was last, significantly
  DelayShape shape_;
};

/// One of the subflows that may share bottlenecks.
struct BottleneckUser {
  DelayStatistics delays;
  uint64_t bottleneck = 0;  ///< the same number: the same bottleneck; 0: not grouped yet
  size_t sharing = 1;       ///< how many users it has, this one included

  DelayShape shape{};   ///< of `delays`, when grouped last
  uint64_t alike = 0;   ///< the same number: alike in shape; 0: crosses no bottleneck, or unknown
  uint64_t before = 0;  ///< `bottleneck` before this was so
};

/// Decides which subflows share a bottleneck: RFC 8382 section 3.3.1, and, ours, delays that go up and down
/// together.
class BottleneckGrouping {
 public:
  /// p_f, p_mad, p_s, p_d (section 2.2): the largest differences of neighbours in a group; variability and
  /// loss relative to the larger one.
  static constexpr double kFrequency = 0.1;
  static constexpr double kVariability = 0.1;
  static constexpr double kSkew = 0.15;
  static constexpr double kLoss = 0.1;
  /// Least correlation() of two users alike in shape to be put together, and of two that are together to stay
  /// so, whatever their shapes.
  static constexpr double kJoin = 0.9;
  static constexpr double kStay = 0.7;

  /// Once per interval, with the intervals of all ended: sets everything but `delays`. Changes the order.
  void group(std::span<BottleneckUser*> users);
  /// Steps 2 to 5 of section 3.3.1 for users of bottlenecks: sets `alike` by `shape`. Changes the order.
  void divide(std::span<BottleneckUser*> users) { divide(users, 0); }

 private:
  void divide(std::span<BottleneckUser*> users, size_t step);

  uint64_t last_ = 0;  // the last number given to a bottleneck
};

}  // namespace braid
