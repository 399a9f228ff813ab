#pragma once

// The byte counts of the uplinks, kept over restarts in a small file: of metered ones in the period
// of their cap, of all in the day and the month. The tunnel counts the bytes; MeterStore knows when
// the periods end.

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/config/units.h"
#include "gateway/control/gateway_status.h"
#include "gateway/log/log.h"
#include "tunnel/tunnel.h"

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

/// Keeps the counts of the uplinks over restarts, and begins new periods by the calendar.
class MeterTracker {
 public:
  /// `tunnel` and `log` must outlive this.
  MeterTracker(Tunnel& tunnel, LogLimiter& log) : tunnel_(tunnel), log_(log) {}

  /// Throws std::runtime_error when the counts of metered uplinks cannot be kept. Without such
  /// uplinks it only warns.
  void setUp(const Config& config);
  /// Begins new periods, saves the counts, and sets the deadline. Call at the start, after each
  /// change of the uplinks' configuration, and at deadline().
  void keep(const std::vector<UplinkConfig>& uplinks, Time now);
  /// Saves the counts for the last time.
  void end(Time now);
  Time deadline() const { return deadline_; }

  /// Adds caps and counts to the specs of metered uplinks; keep() must have been called for them.
  void addTo(std::vector<UplinkSpec>& specs, const std::vector<UplinkConfig>& uplinks) const;
  void addTo(std::vector<UplinkStatus>& uplinks) const;

 private:
  uint64_t uncounted(const UplinkBytes& now) const;
  void count();
  void save(Time now);

  Tunnel& tunnel_;
  LogLimiter& log_;
  std::optional<MeterStore> book_;           ///< created for the first uplink
  std::map<std::string, uint64_t> counted_;  ///< of Tunnel::carried(), what the book has
  Time deadline_ = kNever;
};

}  // namespace braid
