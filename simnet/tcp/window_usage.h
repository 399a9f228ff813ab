#pragma once

#include <algorithm>
#include <cstdint>

namespace braid::sim::tcp {

/// Tells whether the congestion window limits the sender (RFC 7661; the rule is Linux's). For this
/// it remembers the most bytes in flight during a window of data.
class WindowUsage {
 public:
  /// Call after sending. `limited`: the window prevented sending more.
  void onSent(uint64_t una, uint64_t next, uint64_t flight, bool limited) {
    if (una < until_ && !limited && (limited_ || flight <= most_)) return;
    limited_ = limited;
    most_ = flight;
    until_ = next;
  }
  /// True when the window was used enough that it may grow.
  bool used(double window, bool slowStart) const {
    return limited_ || (slowStart && window < 2 * static_cast<double>(most_));
  }

 private:
  bool limited_ = false;
  uint64_t most_ = 0;
  uint64_t until_ = 0;
};

}  // namespace braid::sim::tcp
