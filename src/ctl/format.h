#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

/// Three significant digits and a unit, for people.
std::string formatBytes(double bytes);          ///< "812 B", "1.46 KiB", "20.3 MiB"
std::string formatVolume(double bytes);         ///< "20.3 MB", as providers count
std::string formatRate(double bytesPerSecond);  ///< "8.00 kbit/s", "93.2 Mbit/s"
std::string formatMilliseconds(double ms);      ///< "0.42 ms", "12.5 ms", "1.20 s"
std::string formatAge(double seconds);          ///< "45 s", "3 min 20 s", "2 h 5 min", "9 d 4 h"
std::string formatMicroseconds(double us);      ///< "12.5 us", "1.20 ms"; "-" for none
/// Local time of a moment since 1970: "2026-07-01 00:00".
std::string formatDate(double unixSeconds);
/// Local time of a moment since 1970 on its day: "10:02:15".
std::string formatTimeOfDay(double unixSeconds);
/// 0.0125: "1.25 %".
std::string formatFraction(double fraction);
/// "1.25", without a unit.
std::string formatNumber(double v);
/// part of whole: "0 %", "0.02 %", "12.5 %"; "-" when the whole is 0.
std::string formatShare(uint64_t part, uint64_t whole);
/// Control characters become '?': text of others must not steer a terminal.
std::string printable(std::string_view text);

}  // namespace braid
