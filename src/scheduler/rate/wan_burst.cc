#include "scheduler/rate/wan_burst.h"

#include <utility>

namespace braid {

void WanBurst::end(const WanPath& path, Duration target, Time now, bool streams) {
  streams_ = streams;
  if (!std::exchange(running_, false) || seen_.samples == 0 || seen_.sent() <= told_) return;
  if (!isClean(path, target)) {
    pace_ = std::max(pace_ / 2, kLeast);
    mayGrow_ = now + kPatience;
  } else if (now >= mayGrow_) {
    pace_ = std::min(pace_ * 2, kMost);
  }
}

bool WanBurst::isClean(const WanPath& path, Duration target) const {
  bool lossy = seen_.packets > 1 && seen_.lost > kLossy * seen_.sent();
  return !seen_.marked && !lossy && seen_.meanRtt() - path.base() <= target / 2;
}

}  // namespace braid
