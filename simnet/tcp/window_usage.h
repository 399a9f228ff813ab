#pragma once

#include <algorithm>
#include <cstdint>

namespace braid::sim::tcp {

/// Whether the window is what holds the sender back (RFC 7661 asks for that; the rule is Linux's):
/// remembers for a window of data how much was in flight at most.
class WindowUsage {
 public:
  /// After sending. `limited`: the window kept data back.
  void onSent(uint64_t una, uint64_t next, uint64_t flight, bool limited) {
    if (una < until_ && !limited && (limited_ || flight <= most_)) return;
    limited_ = limited;
    most_ = flight;
    until_ = next;
  }
  /// Whether the window may grow.
  bool used(double window, bool slowStart) const {
    return limited_ || (slowStart && window < 2 * static_cast<double>(most_));
  }

 private:
  bool limited_ = false;
  uint64_t most_ = 0;
  uint64_t until_ = 0;
};

}  // namespace braid::sim::tcp
