#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace braid {

/// "250ms", "1.5s", "10min": a decimal number and one of ns, us, ms, s, min, h, d, with or without a space
/// between. "0" needs no unit. nullopt for everything else, for a sign, and beyond 292 years.
std::optional<Duration> parseDuration(std::string_view text);
/// "4MiB", "1500B", "2MB": a decimal number and one of B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (of
/// 1024). "0" needs no unit. nullopt for everything else, for a fraction of a byte, and beyond 2^63 - 1.
std::optional<uint64_t> parseByteCount(std::string_view text);
/// "20Mbit/s": a decimal number and one of bit/s, kbit/s, Mbit/s, Gbit/s (powers of 1000); bits per second.
/// "0" needs no unit. nullopt for everything else, for a fraction of a bit, and beyond 2^63 - 1.
std::optional<uint64_t> parseBitRate(std::string_view text);
/// Digits only. nullopt for everything else and beyond 2^64 - 1.
std::optional<uint64_t> parseNumber(std::string_view text);

/// The shortest exact text that parseDuration() takes back: "250ms".
std::string durationText(Duration d);
/// The shortest exact text that parseByteCount() takes back, in powers of 1024: "4MiB".
std::string byteCountText(uint64_t bytes);
/// The shortest exact text that parseBitRate() takes back: "20Mbit/s".
std::string bitRateText(uint64_t bitsPerSecond);

}  // namespace braid
