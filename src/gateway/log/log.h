#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "host/system.h"

namespace braid {

/// Writes lines to a descriptor that other processes share, and never blocks on it: not on a
/// journal that hangs, a pipe that nobody reads, or a stopped terminal. (Exception: a terminal that
/// this process may not open itself, another user's for example, blocks it when it stops within a
/// line.)
class LineWriter {
 public:
  explicit LineWriter(int fd);

  /// False: the descriptor has no room now or no reader any more, and nothing of the line was
  /// written. When the descriptor takes only a part of a line, later calls write the rest before
  /// their own lines.
  bool write(std::string_view line);

 private:
  size_t writeSome(std::string_view bytes);

  // This object's own descriptor of the terminal; empty: none is needed or available.
  UniqueFd terminal_;
  int fd_;
  bool isSocket_;
  std::string rest_;  // rest of a line that was written in part
};

/// Where log lines are written to, and their format.
enum class LogStyle : uint8_t {
  kPlain,    ///< stderr with time stamps
  kJournal,  ///< stderr is the journal: no time stamps, "<N>" priorities (sd-daemon(3))
};

/// kJournal when $JOURNAL_STREAM names the file behind stderr (systemd.exec(5)).
LogStyle detectLogStyle();
/// Configures spdlog's default logger. It writes to stderr and never blocks on it (LineWriter).
/// `level`: trace, debug, info, warning, error.
void setupLogging(std::string_view level, LogStyle style);
/// Number of lines that could not be written to stderr, since the start of the process.
uint64_t lostLogLines();
/// Changes the level only.
void setLogLevel(std::string_view level);
/// The journal's priority prefix, such as "<6>", for a spdlog level (0 trace to 5 critical).
std::string_view journalPrefix(int spdlogLevel);

/// Kinds of messages that outsiders or load can cause at any rate. Each kind has its own rate
/// limit.
enum class LogKind : uint8_t {
  kHandshake,
  kSubflow,
  kSendError,
  kDevice,
  kNetwork,
  kResolver,
  kOther,
  kCount
};

/// A rate limit for each kind of message.
class LogLimiter {
 public:
  /// Lines of one kind.
  static constexpr RateLimit kLines{10, 1s};

  /// True when a message of this kind may be logged now. `suppressed` is then the number of
  /// messages of this kind that were suppressed since the last one.
  bool allow(LogKind kind, Time now, uint64_t& suppressed);
  /// Logs a warning if allow() permits it.
  void warn(LogKind kind, Time now, const std::string& line);
  /// " (N like this suppressed)", or nothing when it is 0.
  static std::string suffix(uint64_t suppressed);

 private:
  struct Kind {
    TokenBucket lines;
    uint64_t suppressed = 0;
  };
  std::array<Kind, static_cast<size_t>(LogKind::kCount)> kinds_;
};

}  // namespace braid
