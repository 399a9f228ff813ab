#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ration.h"
#include "base/time.h"

namespace braid {

/// Where log lines go and what they look like.
enum class LogStyle : uint8_t {
  kPlain,    ///< stderr with time stamps
  kJournal,  ///< stderr is the journal: no time stamps, "<N>" priorities (sd-daemon(3))
};

/// kJournal when $JOURNAL_STREAM names the file behind stderr (systemd.exec(5)).
LogStyle detectLogStyle();
/// Sets spdlog's default logger up; it writes to stderr and never waits for it (LineWriter). `level`: trace,
/// debug, info, warning, error.
void setupLogging(std::string_view level, LogStyle style);
/// Lines that stderr did not take so far.
uint64_t lostLogLines();
/// Changes the level only.
void setLogLevel(std::string_view level);
/// "<6>" for a journal priority by the number of a spdlog level (0 trace to 5 critical).
std::string_view journalPrefix(int spdlogLevel);

/// Messages that outsiders or load can cause at any rate, each with a budget of its own.
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

/// A ration for each kind of message.
class LogLimiter {
 public:
  /// Lines of a kind. Ours.
  static constexpr Allowance kLines{10, 1s};

  /// True when a message of this kind may be logged now. Then `suppressed` says how many were not since the
  /// last one.
  bool allow(LogKind kind, Time now, uint64_t& suppressed);
  /// Logs a warning when that is allowed.
  void warn(LogKind kind, Time now, const std::string& line);
  /// " (N like this suppressed)" or nothing.
  static std::string suffix(uint64_t suppressed);

 private:
  struct Kind {
    Ration lines;
    uint64_t suppressed = 0;
  };
  std::array<Kind, static_cast<size_t>(LogKind::kCount)> kinds_;
};

}  // namespace braid
