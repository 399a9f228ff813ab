#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// A number for people, with three significant digits and a unit.
std::string formatBytes(double bytes);          ///< "812 B", "1.46 KiB", "20.3 MiB"
std::string formatVolume(double bytes);         ///< "20.3 MB", as providers count
std::string formatRate(double bytesPerSecond);  ///< "8.00 kbit/s", "93.2 Mbit/s"
std::string formatMilliseconds(double ms);      ///< "0.42 ms", "12.5 ms", "1.20 s"
std::string formatAge(double seconds);          ///< "45 s", "3 min 20 s", "2 h 5 min", "9 d 4 h"
std::string formatMicroseconds(double us);      ///< "12.5 us", "1.20 ms"; "-" for 0 and NaN
/// Local time of a moment in seconds since 1970: "2026-07-01 00:00".
std::string formatDate(double unixSeconds);
/// Local time of day of a moment in seconds since 1970: "10:02:15".
std::string formatTimeOfDay(double unixSeconds);
/// 0.0125: "1.25 %".
std::string formatFraction(double fraction);
/// "1.25", without a unit.
std::string formatNumber(double v);
/// `part` as a share of `whole`: "0 %", "0.02 %", "12.5 %"; "-" when `whole` is 0.
std::string formatShare(uint64_t part, uint64_t whole);
/// Replaces control characters by '?', because foreign text must not control a terminal.
std::string printable(std::string_view text);

/// Text in columns, two spaces apart. A column whose title starts with '>' (not printed) is aligned
/// to the right, for numbers.
class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  /// Adds a row with at most as many cells as there are titles; missing ones are empty.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// The lines with their line ends and without leading blanks.
  std::string toString() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace braid
