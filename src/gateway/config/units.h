#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace braid {

/// "250ms", "1.5s", "10min": a decimal number and one of ns, us, ms, s, min, h, d, with or without
/// a space in between. "0" needs no unit. nullopt for any other text, for a number with a sign, and
/// beyond 292 years.
std::optional<Duration> parseDuration(std::string_view text);
/// "4MiB", "1500B", "2MB": a decimal number and one of B, kB, MB, GB (powers of 1000), KiB, MiB,
/// GiB (powers of 1024). "0" needs no unit. nullopt for any other text, when the result has a
/// fraction of a byte, and beyond 2^63 - 1.
std::optional<uint64_t> parseByteCount(std::string_view text);
/// Bits per second. "20Mbit/s": a decimal number and one of bit/s, kbit/s, Mbit/s, Gbit/s (powers
/// of 1000). "0" needs no unit. nullopt for any other text, when the result has a fraction of a
/// bit, and beyond 2^63 - 1.
std::optional<uint64_t> parseBitRate(std::string_view text);
/// Digits only. nullopt for any other text and beyond 2^64 - 1.
std::optional<uint64_t> parseNumber(std::string_view text);

/// The shortest exact text that parseDuration() accepts: "250ms".
std::string durationText(Duration d);
/// The shortest exact text that parseByteCount() accepts, in powers of 1024: "4MiB".
std::string byteCountText(uint64_t bytes);
/// The shortest exact text that parseBitRate() accepts: "20Mbit/s".
std::string bitRateText(uint64_t bitsPerSecond);

/// When the byte count of a metered uplink restarts at 0, in the host's local time.
struct MeterPeriod {
  enum class Unit : uint8_t { kDay, kWeek, kMonth };
  Unit unit = Unit::kMonth;
  unsigned day = 1;   ///< kWeek: 0 (Sunday) to 6; kMonth: 1 to 31, in a shorter month its last day
  unsigned hour = 0;  ///< 0 to 23; an hour that summer time leaves out: one hour later or earlier
  bool operator==(const MeterPeriod&) const = default;
};

/// The start of the first period after `now`; seconds since 1970, as time() counts them.
std::time_t nextPeriod(const MeterPeriod& period, std::time_t now);

}  // namespace braid
