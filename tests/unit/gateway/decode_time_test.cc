#include "gateway/decode_time.h"

#include <gtest/gtest.h>

#include "host/linux/loop.h"

namespace braid::decode_time_test {
namespace {

const MonotonicClock kClock;

TEST(DecodeTime, RisesWithTheLossesAndIsPlausible) {
  auto times = measureDecodeTimes(128, 16, 1400, kClock);
  Duration before{};
  for (Duration time : times) {
    EXPECT_GE(time, before);
    EXPECT_GT(time, 1us) << "more than 128 symbols of 1400 bytes are read";
    EXPECT_LT(time, 1s);
    before = time;
  }
  EXPECT_GT(times[15], times[0]) << "16 times the arithmetic";
}

TEST(DecodeTime, LargeBlocksTakeLonger) {
  EXPECT_GT(measureDecodeTimes(128, 1, 1400, kClock)[0], measureDecodeTimes(2, 1, 1400, kClock)[0]);
}

TEST(DecodeTime, NothingIsSaidOfMoreLossesThanAsked) {
  auto times = measureDecodeTimes(30, 3, 1400, kClock);
  EXPECT_GT(times[2], Duration::zero());
  for (size_t i = 3; i < times.size(); ++i) EXPECT_EQ(times[i], Duration::zero());
}

TEST(DecodeTime, SmallestBlock) {
  auto times = measureDecodeTimes(1, 16, 1, kClock);
  EXPECT_GT(times[0], Duration::zero());
  EXPECT_GE(times[15], times[0]);
  EXPECT_LT(times[15], 100ms);
}

// The daemon's start must not wait for this measurement.
TEST(DecodeTime, MeasuringIsBounded) {
  Time begin = monotonicNow();
  measureDecodeTimes(128, 16, 9216, kClock);
  EXPECT_LT(monotonicNow() - begin, 5s)
      << "with sanitizers on a busy machine; some milliseconds without";
}

// A machine on which everything timed takes 100 ms at first, and 10 ms more after every ten
// readings of the clock.
class SlowClock final : public Clock {
 public:
  Time now() const override { return now_ += 100ms + 10ms * (looks_++ / 10); }
  int looks() const { return looks_; }

 private:
  mutable Time now_{};
  mutable int looks_ = 0;
};

// Found under an emulator, on which measuring all numbers of losses took eight seconds.
TEST(DecodeTime, ASlowMachineMeasuresFewLossesAndConcludesTheRest) {
  SlowClock clock;
  auto times = measureDecodeTimes(128, 16, 100, clock);
  EXPECT_LE(clock.looks(), 50) << "five runs of three losses, with two looks each";
  const Duration step = times[2] - times[1];
  EXPECT_EQ(step, 10ms);
  for (size_t m = 4; m <= 16; ++m) EXPECT_EQ(times[m - 1], times[2] + (m - 3) * step) << m;
}

TEST(DecodeTime, ASlowMachineConcludesNothingBeyondTheBlock) {
  SlowClock clock;
  auto times = measureDecodeTimes(5, 16, 100, clock);
  EXPECT_GT(times[4], times[3]);
  EXPECT_EQ(times[15], times[4]);
}

TEST(DecodeTime, TextForTheLog) {
  RecoveryOptions options;
  options.mMax = 2;
  options.decodeTime = {12400ns, 1ms, 5ms};
  EXPECT_EQ(decodeTimesText(options), "1: 12us, 2: 1ms");
}

TEST(DecodeTime, AreMeasuredForAsManyAsAnyPolicyTakes) {
  Config config;
  config.tunnel.recoveryOptions.mMax = 2;
  auto times = withDecodeTimes(config, kClock).tunnel.recoveryOptions.decodeTime;
  EXPECT_GT(times[0], Duration::zero());
  for (size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i], times[i - 1]) << i + 1 << " lost";
}

}  // namespace
}  // namespace braid::decode_time_test
