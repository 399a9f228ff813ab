#pragma once

// The file with the byte counts of the uplinks: of metered ones in the period of their cap, of all
// in the day and the month. MeterStore knows when the periods end.

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/config/units.h"

namespace braid {

class MeterStore {
 public:
  struct Entry {
    uint64_t used = 0;      ///< bytes in the present period
    std::time_t until = 0;  ///< when the period ends; seconds since 1970
    MeterPeriod period{};
    bool operator==(const Entry&) const = default;
  };
  /// Keyed by what is counted: an uplink's name for its cap, "NAME today", "NAME month".
  using Entries = std::map<std::string, Entry>;

  /// Converts the content of the file. parse() throws std::exception when format() did not write
  /// it.
  static Entries parse(std::string_view text);
  static std::string format(const Entries& entries);

  /// Reads the file; a missing one counts as empty. A file that save() did not write is kept as
  /// `path`.damaged. Then a copy that is some minutes old is used (`path`.next or `path`.old), or
  /// no counts when there is none. Throws std::runtime_error with a remedy when a file cannot be
  /// read or written.
  explicit MeterStore(std::string path);

  /// A count at wall time `now`. A known count continues until its period ends, even
  /// when the clock was set back. Otherwise a gateway without a battery-backed clock would begin a
  /// new period at each start.
  const Entry& open(const std::string& name, const MeterPeriod& period, std::time_t now);
  /// Stores the bytes that the tunnel has counted in the period.
  void note(const std::string& name, uint64_t used);
  /// Adds bytes to a count that costs nothing when some of it is lost: it is saved less often.
  void add(const std::string& name, uint64_t bytes);
  const Entry* find(const std::string& name) const;

  /// Whether enough has changed since the last save(). A crash loses less than that.
  bool wantsSave(std::time_t now) const;
  /// Replaces the file atomically. Returns what went wrong; empty: nothing.
  std::string save(std::time_t now);

 private:
  Entries replaceDamaged();
  void keepCopy(std::time_t now);
  std::string write(std::time_t now);

  std::string path_;
  Entries entries_;
  uint64_t unsaved_ = 0;  // bytes that were noted
  bool added_ = false;    // bytes were added
  bool changed_ = false;  // other than in bytes
  std::time_t savedAt_ = 0;
  std::optional<std::time_t>
      copiedAt_;  // when this process last made a copy, or first looked for one
};

}  // namespace braid
