#pragma once

#include "host/clock.h"

namespace braid {

/// Stands still until it is told the time.
class FakeClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void advance(Duration by) { now_ += by; }
  /// `to` must not be earlier than now().
  void set(Time to) { now_ = to; }

 private:
  Time now_{1h};
};

}  // namespace braid
