#pragma once

// The byte counts of metered uplinks, kept over restarts in a small file. The tunnel counts; the book knows the
// calendar.

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/config/meter_period.h"

namespace braid {

class MeterBook {
 public:
  struct Entry {
    uint64_t used = 0;      ///< bytes in the present period
    std::time_t until = 0;  ///< when it ends; seconds since 1970
    MeterPeriod period{};
    bool operator==(const Entry&) const = default;
  };
  /// By the uplink's name.
  using Entries = std::map<std::string, Entry>;

  /// What the file's text says. Throws std::exception when save() does not write such.
  static Entries parse(std::string_view text);
  static std::string format(const Entries& entries);

  /// Reads the file; a missing one counts as empty. One that is not what save() writes is kept as `path`.damaged, and a
  /// copy of some minutes ago holds (`path`.next, `path`.old), or nothing. Throws std::runtime_error with a remedy when
  /// a file cannot be read or written.
  explicit MeterBook(std::string path);

  /// The count of an uplink at wall time `now`. A known one goes on while its period lasts, also when the
  /// clock was set back: a gateway without a clock of its own must not begin anew at each start.
  const Entry& open(const std::string& uplink, const MeterPeriod& period, std::time_t now);
  /// What the tunnel has counted so far.
  void note(const std::string& uplink, uint64_t used);
  const Entry* find(const std::string& uplink) const;

  /// Whether enough has changed since the last save(): a crash loses less than that.
  bool wantsSave(std::time_t now) const;
  /// Writes the file anew, in one step. Gives what went wrong; empty: nothing.
  std::string save(std::time_t now);

 private:
  Entries replaceDamaged();
  void keepCopy(std::time_t now);
  std::string write(std::time_t now);

  std::string path_;
  Entries entries_;
  uint64_t unsaved_ = 0;  // bytes
  bool changed_ = false;  // other than in bytes
  std::time_t savedAt_ = 0;
  std::optional<std::time_t> copiedAt_;  // when this process last made a copy, or first looked for one
};

}  // namespace braid
