#pragma once

#include <algorithm>

#include "scheduler/rate/rtt.h"
#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// The retransmission timeout (RFC 6298), with a sample for each ACK. As in Linux and ns-3 the weights are 1/8
/// and 1/4 for each of them, not divided by their number in a round trip (RFC 7323 appendix G).
class Rto {
 public:
  explicit Rto(const Options& options)
      : min_(options.minRto),
        max_(options.maxRto),
        aboveSrtt_(options.minRtoAboveSrtt),
        value_(options.initialRto) {}

  /// Not of a segment that was sent twice, unless timestamps tell which one was acknowledged (Karn).
  void onSample(Duration rtt, Time now) {
    rtt_.onSample(rtt, Duration{}, now);
    Duration margin = 4 * rtt_.variation();
    Duration sum = rtt_.smoothed() + (aboveSrtt_ ? std::max(margin, min_) : margin);
    value_ = std::clamp(sum, min_, max_);
  }
  /// The timer went off (rule 5.5).
  void backOff() { value_ = std::min(2 * value_, max_); }
  /// The SYN was sent again and gave no sample (rule 5.7).
  void onSynTimeout() {
    if (!rtt_.hasSample()) value_ = std::clamp<Duration>(3s, min_, max_);
  }

  Duration value() const { return value_; }
  bool hasSample() const { return rtt_.hasSample(); }
  /// 0 before the first sample.
  Duration srtt() const { return hasSample() ? rtt_.smoothed() : Duration{}; }
  Duration minRtt() const { return rtt_.min(); }

 private:
  RttEstimator rtt_;
  Duration min_, max_;
  bool aboveSrtt_;
  Duration value_;
};

}  // namespace braid::sim::tcp
