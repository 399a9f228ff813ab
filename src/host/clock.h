#pragma once

#include "base/time.h"

namespace braid {

/// Tells the present time on the core's time line, which never runs backwards.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

}  // namespace braid
