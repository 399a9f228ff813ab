#include "gateway/log/log.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/printable.h"

namespace braid {

namespace {

bool isSocket(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

// Opens a terminal again, without blocking. poll() reports a terminal as writable when it has room
// for one byte, and a longer write then blocks unless the descriptor has O_NONBLOCK. A descriptor
// of this process's own may have it.
UniqueFd openedAnew(int fd) {
  if (!::isatty(fd)) return {};
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// Leaves the descriptor's flags unchanged, because other processes share it: O_NONBLOCK would apply
// to them, too. A pipe that poll() reports as writable has room for PIPE_BUF bytes (pipe(7)).
ssize_t writeNow(int fd, bool socket, std::string_view bytes) {
  if (socket) return ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) == 1)
    return ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
  errno = EAGAIN;
  return -1;
}

}  // namespace

LineWriter::LineWriter(int fd)
    : terminal_(openedAnew(fd)), fd_(terminal_ ? terminal_.get() : fd), isSocket_(isSocket(fd)) {}

// Returns how many bytes were written.
size_t LineWriter::writeSome(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = writeNow(fd_, isSocket_, bytes.substr(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

bool LineWriter::write(std::string_view line) {
  rest_.erase(0, writeSome(rest_));
  if (!rest_.empty()) return false;
  size_t done = writeSome(line);
  if (done > 0) rest_ = line.substr(done);
  return done > 0;
}

namespace {

// Formats the flag %* in the pattern for the journal.
class PriorityFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    std::string_view prefix = journalPrefix(message.level);
    out.append(prefix.data(), prefix.data() + prefix.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

uint64_t lostLines = 0;  // in this process

// Writes lines to stderr. Texts from outside may be in them (DNS, portals, peers), so they are made
// printable. The number of lost lines is reported with the next line that is written.
class StderrSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    uint64_t missing = lostLines - told_;
    if (missing > 0) {
      std::string text = std::to_string(missing) + " lines of the log were lost: nobody took them";
      if (put({"", spdlog::level::warn, text})) told_ += missing;
    }
    if (!put(message)) ++lostLines;
  }
  void flush_() override {}

 private:
  bool put(spdlog::details::log_msg message) {
    const std::string text = printableLines({message.payload.data(), message.payload.size()}, "  ");
    message.payload = text;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    return writer_.write({line.data(), line.size()});
  }

  LineWriter writer_{STDERR_FILENO};
  uint64_t told_ = lostLines;
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
  auto logger = std::make_shared<spdlog::logger>("braid", std::make_shared<StderrSink>());
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

uint64_t lostLogLines() {
  return lostLines;
}

void setLogLevel(std::string_view level) {
  spdlog::set_level(spdlog::level::from_str(std::string(level)));
}

bool LogLimiter::allow(LogKind kind, Time now, uint64_t& suppressed) {
  Kind& k = kinds_[static_cast<size_t>(kind)];
  if (!k.lines.take(kLines, now)) {
    ++k.suppressed;
    return false;
  }
  suppressed = std::exchange(k.suppressed, 0);
  return true;
}

void LogLimiter::warn(LogKind kind, Time now, const std::string& line) {
  uint64_t suppressed = 0;
  if (allow(kind, now, suppressed)) spdlog::warn("{}{}", line, suffix(suppressed));
}

std::string LogLimiter::suffix(uint64_t suppressed) {
  return suppressed == 0 ? std::string()
                         : " (" + std::to_string(suppressed) + " like this suppressed)";
}

}  // namespace braid
