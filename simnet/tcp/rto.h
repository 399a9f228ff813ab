#pragma once

#include <algorithm>

#include "scheduler/rate/rtt.h"
#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// The retransmission timeout (RFC 6298), with an RTT sample for each ACK. As in Linux and ns-3,
/// each sample has the weights 1/8 and 1/4; they are not divided by the number of samples per round
/// trip (RFC 7323 appendix G).
class Rto {
 public:
  explicit Rto(const Options& options)
      : min_(options.minRto),
        max_(options.maxRto),
        aboveSrtt_(options.minRtoAboveSrtt),
        value_(options.initialRto) {}

  /// Takes an RTT sample. Not for a segment that was sent twice, unless timestamps tell which
  /// transmission was acknowledged (Karn's rule).
  void onSample(Duration rtt, Time now) {
    rtt_.onSample(rtt, Duration{}, now);
    Duration margin = 4 * rtt_.variation();
    Duration sum = rtt_.smoothed() + (aboveSrtt_ ? std::max(margin, min_) : margin);
    value_ = std::clamp(sum, min_, max_);
  }
  /// The timer fired: doubles the timeout (rule 5.5).
  void backOff() { value_ = std::min(2 * value_, max_); }
  /// The SYN was resent and gave no sample (rule 5.7).
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
