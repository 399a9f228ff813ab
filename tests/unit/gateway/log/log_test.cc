#include "gateway/log/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "host/linux/process.h"
#include "host/system.h"

namespace braid::log_test {
namespace {

TEST(LogLimiter, ABurstThenOnePerSecondWithTheNumberOfSuppressed) {
  LogLimiter limiter;
  Time now{100s};
  uint64_t suppressed = 99;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(limiter.allow(LogKind::kHandshake, now, suppressed)) << i;
    EXPECT_EQ(suppressed, 0u);
  }
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(limiter.allow(LogKind::kHandshake, now, suppressed));
  EXPECT_FALSE(limiter.allow(LogKind::kHandshake, now + 900ms, suppressed));
  EXPECT_TRUE(limiter.allow(LogKind::kHandshake, now + 1100ms, suppressed));
  EXPECT_EQ(suppressed, 8u);
  EXPECT_EQ(LogLimiter::suffix(suppressed), " (8 like this suppressed)");
  EXPECT_EQ(LogLimiter::suffix(0), "");
}

TEST(LogLimiter, KindsDoNotShareABudget) {
  LogLimiter limiter;
  uint64_t suppressed;
  for (int i = 0; i < 20; ++i) limiter.allow(LogKind::kHandshake, Time{1s}, suppressed);
  EXPECT_TRUE(limiter.allow(LogKind::kSendError, Time{1s}, suppressed));
}

TEST(LogLimiter, ALongSilenceGivesNoMoreThanTheBurst) {
  LogLimiter limiter;
  uint64_t suppressed;
  int allowed = 0;
  for (int i = 0; i < 100; ++i) allowed += limiter.allow(LogKind::kDevice, Time{24h}, suppressed);
  EXPECT_EQ(allowed, 10);
}

TEST(JournalPrefix, IsTheSyslogPriority) {
  EXPECT_EQ(journalPrefix(spdlog::level::debug), "<7>");
  EXPECT_EQ(journalPrefix(spdlog::level::info), "<6>");
  EXPECT_EQ(journalPrefix(spdlog::level::warn), "<4>");
  EXPECT_EQ(journalPrefix(spdlog::level::err), "<3>");
  EXPECT_EQ(journalPrefix(spdlog::level::critical), "<2>");
}

TEST(LogStyle, JournalOnlyWhenTheVariableNamesStderr) {
  struct stat s {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &s), 0);
  std::string own = std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
  ::setenv("JOURNAL_STREAM", own.c_str(), 1);
  EXPECT_EQ(detectLogStyle(), LogStyle::kJournal);
  ::setenv("JOURNAL_STREAM", "1:2", 1);
  EXPECT_EQ(detectLogStyle(), LogStyle::kPlain);
  ::unsetenv("JOURNAL_STREAM");
  EXPECT_EQ(detectLogStyle(), LogStyle::kPlain);
}

TEST(SetupLogging, JournalLinesHaveAPriorityAndNoTime) {
  testing::internal::CaptureStderr();
  setupLogging("warning", LogStyle::kJournal);
  spdlog::info("not this");
  spdlog::warn("uplink {} is down", "dsl");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "<4>uplink dsl is down\n");
}

TEST(SetupLogging, PlainLinesHaveALevel) {
  testing::internal::CaptureStderr();
  setupLogging("info", LogStyle::kPlain);
  spdlog::info("hello");
  std::string line = testing::internal::GetCapturedStderr();
  EXPECT_NE(line.find(" info: hello\n"), std::string::npos) << line;
}

// The journal reads a line's priority at its start: <0> is an emergency, shown at all terminals.
TEST(SetupLogging, WhatATerminalWouldObeyIsReplacedAndNoTextMakesALineOfItsOwn) {
  testing::internal::CaptureStderr();
  setupLogging("info", LogStyle::kJournal);
  spdlog::warn("uplink wifi: a login at {}", "http://x/\x1b[2J\u009b2J\u202egnp\n<0>all is lost");
  spdlog::info("reload: {}", "a\nb");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "<4>uplink wifi: a login at http://x/?[2J?2J?gnp\n  <0>all is lost\n"
            "<6>reload: a\n  b\n");
  setupLogging("info", LogStyle::kPlain);
}

/// Redirects stderr to this end during its lifetime.
class StderrGoesTo {
 public:
  explicit StderrGoesTo(int fd) : before_(::dup(STDERR_FILENO)) { ::dup2(fd, STDERR_FILENO); }
  ~StderrGoesTo() { ::dup2(before_.get(), STDERR_FILENO); }

 private:
  UniqueFd before_;
};

/// Reads what is available.
std::string readAll(int fd) {
  std::string out;
  char bytes[65536];
  ssize_t n;
  while ((n = ::read(fd, bytes, sizeof bytes)) > 0) out.append(bytes, static_cast<size_t>(n));
  return out;
}

// The reader's end is non-blocking. The writer's end is blocking, and would block.
void expectNoWaiting(UniqueFd reader, UniqueFd writer) {
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  uint64_t before = lostLogLines();
  constexpr int kLines = 20'000;  // more than any pipe or socket holds
  {
    StderrGoesTo there(writer.get());
    setupLogging("info", LogStyle::kJournal);
    for (int i = 0; i < kLines; ++i) spdlog::info("line {} with some words to make it longer", i);
  }
  uint64_t lost = lostLogLines() - before;
  EXPECT_GT(lost, 0u);
  std::string taken = readAll(reader.get());
  StderrGoesTo there(writer.get());
  spdlog::warn("last");
  taken += readAll(reader.get());
  EXPECT_THAT(taken, testing::StartsWith("<6>line 0 with"));
  EXPECT_THAT(taken, testing::EndsWith("<4>" + std::to_string(lost) +
                                       " lines of the log were lost: nobody took them\n<4>last\n"));
  EXPECT_EQ(std::count(taken.begin(), taken.end(), '\n') - 2 + lost, kLines) << "lines are whole";
  reader = UniqueFd();
  ::signal(SIGPIPE, SIG_IGN);
  spdlog::warn("nobody there");
  EXPECT_EQ(lostLogLines() - before, lost + 1);
}

TEST(SetupLogging, AFullPipeHoldsNobodyUp) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  expectNoWaiting(UniqueFd(ends[0]), UniqueFd(ends[1]));
  setupLogging("info", LogStyle::kPlain);
}

TEST(SetupLogging, AJournalThatHangsHoldsNobodyUp) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  expectNoWaiting(UniqueFd(ends[0]), UniqueFd(ends[1]));
  setupLogging("info", LogStyle::kPlain);
}

/// Reads what arrives within some time, because a terminal passes data on with a delay.
std::string readSlowly(int fd) {
  std::string out;
  char bytes[65536];
  pollfd ready{fd, POLLIN, 0};
  while (::poll(&ready, 1, 500) == 1) {
    ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) break;
    out.append(bytes, static_cast<size_t>(n));
  }
  return out;
}

TEST(SetupLogging, ATerminalThatIsStoppedOrNotReadHoldsNobodyUp) {
  UniqueFd screen(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(screen);
  ASSERT_EQ(::grantpt(screen.get()), 0);
  ASSERT_EQ(::unlockpt(screen.get()), 0);
  char name[64];
  ASSERT_EQ(::ptsname_r(screen.get(), name, sizeof name), 0);
  UniqueFd terminal(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  termios settings{};
  ASSERT_EQ(::tcgetattr(terminal.get(), &settings), 0);
  ::cfmakeraw(&settings);
  ASSERT_EQ(::tcsetattr(terminal.get(), TCSANOW, &settings), 0);

  uint64_t before = lostLogLines();
  StderrGoesTo there(terminal.get());
  setupLogging("info", LogStyle::kJournal);
  ASSERT_EQ(::tcflow(terminal.get(), TCOOFF), 0);  // Ctrl-S
  spdlog::info("one");
  EXPECT_EQ(lostLogLines() - before, 1u);
  ASSERT_EQ(::tcflow(terminal.get(), TCOON), 0);
  spdlog::info("two");
  EXPECT_EQ(readSlowly(screen.get()),
            "<4>1 lines of the log were lost: nobody took them\n<6>two\n");

  constexpr int kLines = 200;  // more than any terminal holds
  // a terminal that has some room need not have room for a whole line
  const std::string text(4000, '.');
  ::alarm(60);  // a logger that blocked would block forever
  for (int i = 0; i < kLines; ++i) spdlog::info("line {} {}", i, text);
  ::alarm(0);
  EXPECT_GT(lostLogLines() - before, 1u);
  EXPECT_LT(lostLogLines() - before, static_cast<uint64_t>(kLines));
  EXPECT_THAT(readSlowly(screen.get()), testing::StartsWith("<6>line 0 ..."));
  EXPECT_FALSE(::fcntl(terminal.get(), F_GETFL) & O_NONBLOCK) << "others share it";
  setupLogging("info", LogStyle::kPlain);
}

TEST(Watchdog, IntervalIsHalfOfWhatTheManagerAllows) {
  ::unsetenv("WATCHDOG_USEC");
  EXPECT_EQ(notify::watchdogInterval(), Duration::zero());
  ::setenv("WATCHDOG_USEC", "10000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  EXPECT_EQ(notify::watchdogInterval(), Duration(5s));
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(notify::watchdogInterval(), Duration::zero());
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("WATCHDOG_PID");
}

}  // namespace
}  // namespace braid::log_test
