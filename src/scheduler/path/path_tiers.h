#pragma once

// Which uplinks may carry data: normal ones; metered ones when the normal ones are down or too
// slow; backups when neither is usable.

#include <algorithm>
#include <compare>
#include <cstdint>

#include "base/field.h"
#include "base/time.h"

namespace braid {

/// What an uplink is for, best first.
enum class PathUse : uint8_t {
  kNormal,
  kMetered,  ///< costs per byte: carries what the normal uplinks cannot
  kBackup,   ///< carries data only while neither a normal nor a metered uplink is usable
};
/// "normal", "metered", "backup".
const char* useName(PathUse use);

/// How one side wants a path to be used.
struct PathPreference {
  static constexpr uint8_t kMaxWeight = 100;
  /// Bytes per second. Ceilings outside this range, 64 kbit/s to 100 Gbit/s, are refused.
  static constexpr uint64_t kMinCeiling = 8'000;
  static constexpr uint64_t kMaxCeiling = 12'500'000'000;

  PathUse use = PathUse::kNormal;
  uint8_t weight = 1;    ///< 1..kMaxWeight: share of its uplink among the normal ones (`weighted`)
  uint8_t uplink = 0;    ///< subflows with the same number share an uplink; 0: it has its own
  uint64_t ceiling = 0;  ///< bytes per second of all subflows of the uplink together; 0: no limit
  auto operator<=>(const PathPreference&) const = default;
};
template <>
inline constexpr auto kFieldsOf<PathPreference> = field::table<PathPreference>(
    field::text("use", "what its uplink is for: `normal`, `metered`, `backup`",
                &PathPreference::use),
    field::gauge("weight", FieldUnit::kNone, "share of its uplink among the normal ones",
                 &PathPreference::weight),
    field::unlisted(&PathPreference::uplink),
    field::gauge("limit_bytes_per_s", FieldUnit::kBytesPerSecond,
                 "ceiling of all subflows of the uplink together; 0: none",
                 &PathPreference::ceiling));

/// What a usable path may carry now.
enum class PathRole : uint8_t {
  kAll,
  kOverflow,  ///< new data that has waited for better paths (OverflowHysteresis)
  kNone,      ///< only probes and its own acknowledgments, which keep the path known
};

/// The role of a path of this use. `best`: the best use among the usable paths. `saturated`: the
/// best paths have been too slow for some time, OverflowHysteresis::helps().
PathRole roleOf(PathUse use, PathUse best, bool saturated);

/// Decides whether the normal paths have been too slow for some time, so that metered paths help.
///
/// Data waits from the moment when some is left over while no normal path is open (window, pacer),
/// until none is left. A level rises by the time in which data waited and falls by a quarter of the
/// time in which none waited, between 0 and kFull. Metered paths help from the moment when the
/// level is kFull until it is 0. So a web page does not bring them in, and a pause in a download
/// does not end their help. While they help, they take only data that has waited for kPatience:
/// what the normal paths can carry stays with these, and the waiting that remains keeps the level
/// up.
class OverflowHysteresis {
 public:
  static constexpr Duration kFull = 1s;
  static constexpr int kFall = 4;  ///< the level falls this many times slower than it rises
  static constexpr Duration kPatience = 10ms;

  /// Data is left over, and no normal path is open.
  void onWaiting(Time now);
  /// No data is left.
  void onDrained(Time now);
  void onTimer(Time now) { advance(now); }
  bool helps() const { return helps_; }
  /// Metered paths may take data now: it has waited for kPatience.
  bool isUrgent(Time now) const { return helps_ && waiting_ && now - waitsSince_ >= kPatience; }
  /// No data waits and the level is 0: onDrained() and onTimer() change nothing.
  bool isStill() const { return !waiting_ && level_ == Duration{}; }
  /// When helps() or isUrgent() changes with time alone; kNever: only after the next event.
  Time nextDeadline(Time now) const;

 private:
  void advance(Time now);

  bool waiting_ = false;
  bool helps_ = false;
  Time waitsSince_;
  Duration level_{};
  Time at_ = Time::min();  // when level_ was computed
};

inline const char* useName(PathUse use) {
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

inline PathRole roleOf(PathUse use, PathUse best, bool saturated) {
  if (use <= best) return PathRole::kAll;
  return use == PathUse::kMetered && saturated ? PathRole::kOverflow : PathRole::kNone;
}

inline void OverflowHysteresis::onWaiting(Time now) {
  advance(now);
  if (!waiting_) waitsSince_ = now;
  waiting_ = true;
}

inline void OverflowHysteresis::onDrained(Time now) {
  advance(now);
  waiting_ = false;
}

inline void OverflowHysteresis::advance(Time now) {
  if (at_ == Time::min()) at_ = now;
  Duration passed = now - at_;
  level_ = waiting_ ? std::min<Duration>(level_ + passed, kFull)
                    : std::max<Duration>(level_ - passed / kFall, Duration{});
  at_ = now;
  if (level_ == kFull) helps_ = true;
  if (level_ == Duration{}) helps_ = false;
}

inline Time OverflowHysteresis::nextDeadline(Time now) const {
  if (!waiting_) return helps_ ? at_ + level_ * kFall : kNever;
  if (!helps_) return at_ + (kFull - level_);
  return isUrgent(now) ? kNever : waitsSince_ + kPatience;
}

}  // namespace braid
