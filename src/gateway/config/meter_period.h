#pragma once

#include <cstdint>
#include <ctime>

namespace braid {

/// When the count of a metered uplink begins anew, in the host's local time.
struct MeterPeriod {
  enum class Unit : uint8_t { kDay, kWeek, kMonth };
  Unit unit = Unit::kMonth;
  unsigned day = 1;   ///< kWeek: 0 (Sunday) to 6; kMonth: 1 to 31, in a shorter month its last day
  unsigned hour = 0;  ///< 0 to 23; one that summer time leaves out: an hour later or earlier
  bool operator==(const MeterPeriod&) const = default;
};

/// When the first period begins after `now`; seconds since 1970, as time() counts them.
std::time_t nextPeriod(const MeterPeriod& period, std::time_t now);

}  // namespace braid
