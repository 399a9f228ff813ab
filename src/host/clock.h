#pragma once

#include "base/time.h"

namespace braid {

/// Tells the time line of the core. It never runs backwards.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

}  // namespace braid
