#include "scheduler/path/path_tiers.h"

#include <algorithm>

namespace braid {

const char* useName(PathUse use) {
  switch (use) {
    case PathUse::kNormal:
      return "normal";
    case PathUse::kMetered:
      return "metered";
    case PathUse::kBackup:
      return "backup";
  }
  return "?";
}

PathRole roleOf(PathUse use, PathUse best, bool saturated) {
  if (use <= best) return PathRole::kAll;
  return use == PathUse::kMetered && saturated ? PathRole::kOverflow : PathRole::kNone;
}

void OverflowHysteresis::onWaiting(Time now) {
  advance(now);
  if (!waiting_) waitsSince_ = now;
  waiting_ = true;
}

void OverflowHysteresis::onDrained(Time now) {
  advance(now);
  waiting_ = false;
}

void OverflowHysteresis::advance(Time now) {
  if (at_ == Time::min()) at_ = now;
  Duration passed = now - at_;
  level_ = waiting_ ? std::min<Duration>(level_ + passed, kFull)
                    : std::max<Duration>(level_ - passed / kFall, Duration{});
  at_ = now;
  if (level_ == kFull) helps_ = true;
  if (level_ == Duration{}) helps_ = false;
}

Time OverflowHysteresis::nextDeadline(Time now) const {
  if (!waiting_) return helps_ ? at_ + level_ * kFall : kNever;
  if (!helps_) return at_ + (kFull - level_);
  return isUrgent(now) ? kNever : waitsSince_ + kPatience;
}

}  // namespace braid
