#include "tunnel/queue/codel.h"

#include <cmath>

namespace braid {

bool Codel::isStanding(Duration sojourn, size_t bytes, const CodelOptions& options, Time now) {
  if (sojourn < options.target || bytes <= options.maxPacket) {
    firstAbove_ = kNotAbove;
    return false;
  }
  if (firstAbove_ == kNotAbove) {
    firstAbove_ = now + options.interval;
    return false;
  }
  return now >= firstAbove_;
}

void Codel::enter(const CodelOptions& options, Time now) {
  dropping_ = true;
  uint32_t delta = count_ - lastCount_;
  bool recent = now - dropNext_ < kReuseIntervals * options.interval;
  count_ = delta > 1 && recent ? delta : 1;
  dropNext_ = controlLaw(now, options);
  lastCount_ = count_;
}

Time Codel::controlLaw(Time t, const CodelOptions& options) const {
  return t + fromSeconds(toSeconds(options.interval) / std::sqrt(static_cast<double>(count_)));
}

}  // namespace braid
