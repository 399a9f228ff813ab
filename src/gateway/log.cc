#include "gateway/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace braid {

namespace {

// The flag %* of the journal's pattern.
class PriorityFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    std::string_view prefix = journalPrefix(message.level);
    out.append(prefix.data(), prefix.data() + prefix.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PriorityFlag>(); }
};

}  // namespace

LogStyle detectLogStyle() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat s {};
  if (!stream || ::fstat(STDERR_FILENO, &s) < 0) return LogStyle::kPlain;
  std::string own = std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
  return own == stream ? LogStyle::kJournal : LogStyle::kPlain;
}

std::string_view journalPrefix(int spdlogLevel) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"<7>", "<7>", "<6>", "<4>", "<3>", "<2>"};
  return kPrefixes[static_cast<size_t>(std::clamp(spdlogLevel, 0, 5))];
}

void setupLogging(std::string_view level, LogStyle style) {
  auto logger = std::make_shared<spdlog::logger>("braid", std::make_shared<spdlog::sinks::stderr_sink_st>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (style == LogStyle::kJournal) {
    formatter->add_flag<PriorityFlag>('*').set_pattern("%*%v");
  } else {
    formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  }
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  setLogLevel(level);
}

void setLogLevel(std::string_view level) {
  spdlog::set_level(spdlog::level::from_str(std::string(level)));
}

bool LogLimiter::allow(LogKind kind, Time now, uint64_t& suppressed) {
  Bucket& b = buckets_[static_cast<size_t>(kind)];
  if (now > b.last) b.tokens = std::min(kBurst, b.tokens + toSeconds(now - b.last) * kPerSecond);
  b.last = std::max(b.last, now);
  if (b.tokens < 1) {
    ++b.suppressed;
    return false;
  }
  b.tokens -= 1;
  suppressed = std::exchange(b.suppressed, 0);
  return true;
}

void LogLimiter::warn(LogKind kind, Time now, const std::string& line) {
  uint64_t suppressed = 0;
  if (allow(kind, now, suppressed)) spdlog::warn("{}{}", line, suffix(suppressed));
}

std::string LogLimiter::suffix(uint64_t suppressed) {
  return suppressed == 0 ? std::string() : " (" + std::to_string(suppressed) + " like this suppressed)";
}

}  // namespace braid
