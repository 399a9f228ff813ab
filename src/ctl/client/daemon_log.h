#pragma once

// What the daemon of a gateway has written into this machine's log: the journal of systemd, or
// what OpenWrt's logread shows.

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// One line of a daemon in the log.
struct LogLine {
  int priority = 6;  ///< syslog(3): 3 and less are errors, 4 is a warning
  std::string text;  ///< without time and level; printable
  bool operator==(const LogLine&) const = default;
};

/// The lines of `journalctl --output=json`; what is not such a line is left out.
std::vector<LogLine> parseJournal(std::string_view output);
/// The lines of OpenWrt's `logread` that the service `braid` or its daemon wrote.
std::vector<LogLine> parseLogread(std::string_view output);

/// The line that says why a daemon failed: the last error, else the last warning. Empty: none.
std::string decisiveLine(const std::vector<LogLine>& lines);

/// What the daemon of braid@NAME has written since that moment, the last 200 lines; where it wrote
/// nothing, what systemd says of the unit. With OpenWrt's logread, of the only gateway, without
/// regard to `since`. Empty: this user cannot read the log, or there is none.
std::vector<LogLine> readDaemonLog(const std::string& name, std::time_t since);
/// The command by which root reads all of it; empty: it is unknown where the log is.
std::string logCommand(const std::string& name);

}  // namespace braid
