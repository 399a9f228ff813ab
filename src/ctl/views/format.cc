#include "ctl/views/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <span>

namespace braid {

namespace {

std::string withDigits(double v, const char* unit) {
  // With these limits, rounding never gives a fourth digit (9.999 -> 10.00).
  int decimals = v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, v, unit);
  return text.data();
}

std::string scaled(double v, std::span<const char* const> units) {
  if (!std::isfinite(v) || v < 0) return "-";
  size_t unit = 0;
  // 999.5 would be written with four digits.
  while (unit + 1 < units.size() && v >= 999.5) v /= 1000, ++unit;
  if (unit == 0 && v == std::floor(v))
    return std::to_string(static_cast<uint64_t>(v)) + " " + units[0];
  return withDigits(v, units[unit]);
}

std::string twoParts(uint64_t large, const char* largeUnit, uint64_t small, const char* smallUnit) {
  std::string text = std::to_string(large) + " " + largeUnit;
  return small == 0 ? text : text + " " + std::to_string(small) + " " + smallUnit;
}

}  // namespace

std::string formatBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  return scaled(bytes, kUnits);
}

std::string formatRate(double bytesPerSecond) {
  static constexpr const char* kUnits[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"};
  return scaled(bytesPerSecond * 8, kUnits);
}

std::string formatMilliseconds(double ms) {
  if (!std::isfinite(ms) || ms <= 0) return "-";
  return ms >= 999.5 ? withDigits(ms / 1000, "s") : withDigits(ms, "ms");
}

std::string formatMicroseconds(double us) {
  if (!std::isfinite(us) || us <= 0) return "-";
  return us >= 999.5 ? formatMilliseconds(us / 1000) : withDigits(us, "us");
}

std::string formatFraction(double fraction) {
  if (!std::isfinite(fraction) || fraction < 0) return "-";
  if (fraction == 0) return "0 %";
  double percent = 100 * fraction;
  return percent < 0.005 ? "<0.01 %" : withDigits(percent, "%");
}

std::string formatAvailability(double fraction) {
  if (!(fraction < 1 && fraction >= 0.99)) return formatFraction(fraction);
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", std::floor(fraction * 10000) / 100);
  return text.data();
}

std::string formatNumber(double v) {
  if (!std::isfinite(v) || v < 0) return "-";
  std::string text = withDigits(v, "");
  return text.substr(0, text.size() - 1);
}

std::string formatAge(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  auto s = static_cast<uint64_t>(std::min(seconds, 1e15));
  if (s < 60) return std::to_string(s) + " s";
  if (s < 3600) return twoParts(s / 60, "min", s % 60, "s");
  if (s < 86400) return twoParts(s / 3600, "h", s % 3600 / 60, "min");
  return twoParts(s / 86400, "d", s % 86400 / 3600, "h");
}

std::string formatShortAge(double seconds) {
  const std::string age = formatAge(seconds);
  return age.substr(0, age.find(' ', age.find(' ') + 1));
}

namespace {
std::string formatMoment(double unixSeconds, const char* format) {
  constexpr double kLatest = 253402300799;  // the last second of the year 9999
  if (!(unixSeconds >= 0 && unixSeconds <= kLatest)) return "-";
  auto moment = static_cast<std::time_t>(unixSeconds);
  std::tm local{};
  std::array<char, 32> text{};
  if (!::localtime_r(&moment, &local) || !std::strftime(text.data(), text.size(), format, &local))
    return "-";
  return text.data();
}
}  // namespace

std::string formatDate(double unixSeconds) {
  return formatMoment(unixSeconds, "%F %H:%M");
}

std::string formatTimeOfDay(double unixSeconds) {
  return formatMoment(unixSeconds, "%H:%M:%S");
}

std::string formatShare(uint64_t part, uint64_t whole) {
  return whole == 0 ? "-" : formatFraction(static_cast<double>(part) / static_cast<double>(whole));
}

namespace {

// Number of characters, not bytes, of UTF-8 text.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

namespace {

// The first `columns` characters of a text, the last of them "~" if it has more.
std::string cut(const std::string& text, size_t columns) {
  if (width(text) <= columns) return text;
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && seen++ + 1 >= columns) break;
  return text.substr(0, end) + "~";
}

}  // namespace

std::string Table::toString(size_t columns) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < titles_.size(); ++i) {
    size_t widest = width(titles_[i]);
    for (const auto& row : rows_) widest = std::max(widest, width(row[i]));
    widths.push_back(widest);
  }
  size_t all = 2 * (widths.size() - 1);
  for (size_t each : widths) all += each;
  for (; all > columns; --all) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool canShrink = !right_[i] && widths[i] > width(titles_[i]);
      if (canShrink && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  std::string text;
  auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string shown = cut(cells[i], widths[i]), pad(widths[i] - width(shown), ' ');
      out += (i > 0 ? "  " : "") + (right_[i] ? pad + shown : shown + pad);
    }
    text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  };
  line(titles_);
  for (const auto& row : rows_) line(row);
  return text;
}

std::string paragraph(std::string_view text) {
  std::string out;
  size_t begin = 0;  // of the present line
  bool isEmpty = true;
  auto endLine = [&] {
    out += '\n';
    begin = out.size();
    out += "  ";
    isEmpty = true;
  };
  for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!isEmpty && out.size() - begin + 1 + word.size() > kColumns) endLine();
    if (!isEmpty) out += ' ';
    out += word;
    isEmpty = false;
    if (end < text.size() && text[end] == '\n') endLine();
  }
  return out + '\n';
}

std::string figureText(const nlohmann::json& object, const FieldInfo& info) {
  if (info.kind == FieldKind::kFlag) return flagOf(object, info.name) ? "yes" : "no";
  switch (info.unit) {
    case FieldUnit::kBytes:
      return formatBytes(numberOf(object, info.name));
    case FieldUnit::kBytesPerSecond:
      return formatRate(numberOf(object, info.name));
    case FieldUnit::kMilliseconds:
      return formatMilliseconds(numberOf(object, info.name));
    case FieldUnit::kSeconds:
      return formatAge(numberOf(object, info.name));
    case FieldUnit::kUnixSeconds:
      return formatDate(numberOf(object, info.name));
    case FieldUnit::kFraction:
      return formatFraction(numberOf(object, info.name));
    case FieldUnit::kNone:
    case FieldUnit::kPackets:
      break;
  }
  nlohmann::json value = fieldOf(object, info.name);
  return value.is_number_float() ? formatNumber(value.get<double>()) : textOf(object, info.name);
}

}  // namespace braid
