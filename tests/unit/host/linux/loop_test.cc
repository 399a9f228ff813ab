#include "host/linux/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace braid::loop_test {
namespace {

// Exceptions must not pass through libev, which is C.
TEST(Loop, ThrowsWhatACallbackThrew) {
  Loop loop;
  int calls = 0;
  Timer thrower(loop, [&] {
    ++calls;
    throw std::runtime_error("no memory");
  });
  Timer other(loop, [&] { ++calls; });
  thrower.arm(Time{});
  EXPECT_THROW(loop.run(), std::runtime_error);
  other.arm(Time{});
  loop.runOnce(true);
  EXPECT_EQ(calls, 2);
}

// A daemon that is already ending must not be told again to end or to reload its configuration.
TEST(Loop, CallsNobodyAfterItsStop) {
  Loop loop;
  int stops = 0;
  auto stop = [&] {
    ++stops;
    loop.stop();
  };
  SignalWatcher first(loop, SIGUSR1, stop), second(loop, SIGUSR2, stop);
  ::raise(SIGUSR1);
  ::raise(SIGUSR2);
  loop.run();
  EXPECT_EQ(stops, 1);
}

TEST(MonotonicNow, RunsForward) {
  Time a = monotonicNow();
  Time b = monotonicNow();
  EXPECT_GT(a.time_since_epoch().count(), 0);
  EXPECT_LE(a, b);
}

TEST(Timer, FiresAtItsDeadlineAndNotBefore) {
  Loop loop;
  Time fired{};
  Timer timer(loop, [&] {
    fired = monotonicNow();
    loop.stop();
  });
  Time deadline = monotonicNow() + 1500us;
  timer.arm(deadline);
  loop.run();
  EXPECT_GE(fired, deadline);
  EXPECT_LT(fired, deadline + 500ms);
  EXPECT_EQ(timer.deadline(), kNever);
}

TEST(Timer, PastDeadlineFiresAtOnce) {
  Loop loop;
  int fired = 0;
  Timer timer(loop, [&] { ++fired; });
  timer.arm(Time{});
  loop.runOnce(true);
  EXPECT_EQ(fired, 1);
}

TEST(Timer, DisarmedAndMovedDeadlinesDoNotFire) {
  Loop loop;
  int fired = 0;
  Timer timer(loop, [&] { ++fired; });
  timer.arm(monotonicNow() + 1ms);
  timer.arm(kNever);
  ::usleep(3000);
  loop.runOnce(false);
  EXPECT_EQ(fired, 0);
  timer.arm(monotonicNow() + 1ms);
  ::usleep(3000);
  timer.arm(monotonicNow() + 1h);  // a timer that has expired and is then moved
  loop.runOnce(false);
  EXPECT_EQ(fired, 0);
}

// Seconds until the only timer of this process fires.
long secondsUntilWakeUp() {
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream in(file.path());
    for (std::string word; in >> word;) {
      long seconds = 0;
      char open = 0;
      if (word == "it_value:" && in >> open >> seconds) return seconds;
    }
  }
  return -1;
}

TEST(Timer, APutOffDeadlineCostsNothingUntilTheWakeUpComes) {
  Loop loop;
  int fired = 0;
  Timer timer(loop, [&] { ++fired; });
  timer.arm(monotonicNow() + 1h);
  timer.arm(monotonicNow() + 2h);
  EXPECT_LE(secondsUntilWakeUp(), 3600) << "the kernel was told";
  timer.arm(monotonicNow() + 30min);
  EXPECT_LE(secondsUntilWakeUp(), 1800);
  EXPECT_GT(secondsUntilWakeUp(), 0);
  timer.arm(monotonicNow() + 1ms);
  Time deadline = monotonicNow() + 20ms;
  timer.arm(deadline);
  while (fired == 0) loop.runOnce(true);
  EXPECT_GE(monotonicNow(), deadline);
  timer.arm(monotonicNow() + 1ms);
  while (fired == 1) loop.runOnce(true);
  EXPECT_EQ(fired, 2);
}

TEST(Timer, CanBeArmedInItsOwnCallback) {
  Loop loop;
  int fired = 0;
  Timer* self = nullptr;
  Timer timer(loop, [&] {
    if (++fired == 3) return loop.stop();
    self->arm(monotonicNow() + 100us);
  });
  self = &timer;
  timer.arm(monotonicNow());
  loop.run();
  EXPECT_EQ(fired, 3);
}

TEST(IoWatcher, ReadAndWriteInterestsAreSeparate) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  UniqueFd reader(fds[0]), writer(fds[1]);
  Loop loop;
  int reads = 0, writes = 0;
  IoWatcher in(loop, reader.get(), [&] { ++reads; });
  IoWatcher out(
      loop, writer.get(), [&] { FAIL(); }, [&] { ++writes; });
  loop.runOnce(false);
  EXPECT_EQ(reads + writes, 0);
  out.wantWrite(true);
  loop.runOnce(false);
  EXPECT_EQ(writes, 1);
  out.wantWrite(false);
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  loop.runOnce(false);
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(writes, 1);
  loop.runOnce(false);
  EXPECT_EQ(reads, 2);
}

TEST(SignalWatcher, CallsBackInsideTheLoop) {
  Loop loop;
  int seen = 0;
  SignalWatcher watcher(loop, SIGUSR2, [&] { ++seen; });
  ::raise(SIGUSR2);
  EXPECT_EQ(seen, 0);
  loop.runOnce(false);
  EXPECT_EQ(seen, 1);
}

TEST(PrepareHook, RunsBeforeEachWaitAndCanKeepTheLoopAwake) {
  Loop loop;
  int turns = 0;
  PrepareHook* self = nullptr;
  PrepareHook hook(loop, [&] {
    ++turns;
    self->keepAwake(turns < 5);
    if (turns == 5) loop.stop();
  });
  self = &hook;
  hook.keepAwake(true);
  loop.run();
  EXPECT_EQ(turns, 5);
}

}  // namespace
}  // namespace braid::loop_test
