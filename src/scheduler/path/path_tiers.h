#pragma once

// Who may carry data: normal uplinks; metered ones when those are down or saturated; then backups.

#include <compare>
#include <cstdint>

#include "base/field.h"
#include "base/time.h"

namespace braid {

/// What an uplink is for, best first.
enum class PathUse : uint8_t {
  kNormal,
  kMetered,  ///< costs by the byte: for what the normal ones cannot carry
  kBackup,   ///< for when neither a normal nor a metered one is usable
};
/// "normal", "metered", "backup".
const char* useName(PathUse use);

/// How one side wants a path to be used.
struct PathPreference {
  static constexpr uint8_t kMaxWeight = 100;
  /// Ceilings outside of this range are refused: 64 kbit/s to 100 Gbit/s. Ours.
  static constexpr uint64_t kMinCeiling = 8'000;
  static constexpr uint64_t kMaxCeiling = 12'500'000'000;

  PathUse use = PathUse::kNormal;
  uint8_t weight = 1;    ///< 1..kMaxWeight: its share among the normal ones (`weighted`)
  uint8_t uplink = 0;    ///< subflows of one number share an uplink; 0: this one has it for itself
  uint64_t ceiling = 0;  ///< bytes per second of all subflows of the uplink together; 0: none
  auto operator<=>(const PathPreference&) const = default;
};
template <>
inline constexpr auto kFieldsOf<PathPreference> = field::table<PathPreference>(
    field::text("use", "what its uplink is for: `normal`, `metered`, `backup`", &PathPreference::use),
    field::gauge("weight", FieldUnit::kNone, "share of its uplink among the normal ones",
                 &PathPreference::weight),
    field::unlisted(&PathPreference::uplink),
    field::gauge("limit_bytes_per_s", FieldUnit::kBytesPerSecond,
                 "ceiling of all subflows of the uplink together; 0: none", &PathPreference::ceiling));

/// What a usable path may carry now.
enum class PathDuty : uint8_t {
  kAll,
  kOverflow,  ///< new data that has waited for the others, as Saturation says
  kNone,      ///< what keeps it known: probes, acknowledgments of its own
};

/// The duty of a path of that use when `best` is the best use of the paths that are usable. `saturated`: the
/// best ones have long been too little.
PathDuty dutyOf(PathUse use, PathUse best, bool saturated);

/// Whether the normal paths have long been too little, so that metered ones help.
///
/// Data waits from when some is left over while no normal path is open (window, pacer) until none is left. A
/// level rises by the time that data waited and falls by a quarter of the time that none did, between 0 and
/// kFull. Metered paths help from when it is full until it is empty, so that neither a web page brings them
/// in nor a pause of a download sends them away. While they help they take only what has waited for
/// kPatience: what the normal paths can carry stays with them, and the wait that remains keeps the level up.
/// Ours.
class Saturation {
 public:
  static constexpr Duration kFull = 1s;
  static constexpr int kFall = 4;  ///< times slower than it rises
  static constexpr Duration kPatience = 10ms;

  /// Data is left over, and no normal path is open.
  void onWaiting(Time now);
  /// None is left.
  void onDrained(Time now);
  void onTimer(Time now) { advance(now); }
  bool helps() const { return helps_; }
  /// Metered paths may take some now.
  bool isUrgent(Time now) const { return helps_ && waiting_ && now - waitsSince_ >= kPatience; }
  /// Nothing waits, and it is as if nothing ever had: onDrained() and onTimer() change nothing.
  bool isStill() const { return !waiting_ && level_ == Duration{}; }
  /// When one of the two changes by itself; kNever: only with the next event.
  Time nextDeadline(Time now) const;

 private:
  void advance(Time now);

  bool waiting_ = false;
  bool helps_ = false;
  Time waitsSince_;
  Duration level_{};
  Time at_ = Time::min();  // of level_
};

}  // namespace braid
