#include "scheduler/rate/one_way_delay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "base/random.h"

namespace braid::one_way_delay_test {
namespace {

constexpr Duration kThere = 20ms, kBack = 35ms;

/// A path with queues of known length, and a peer whose clock differs from this side's.
class Path {
 public:
  explicit Path(uint64_t seed, Duration offset = 0s) : random_(seed), offset_(offset) {}

  Time now() const { return now_; }
  /// A packet is sent and acknowledged; then `pause` passes until the next one is.
  void exchange(Duration there, Duration back, Duration pause = 10ms, bool ofRun = false) {
    Time received = now_ + kThere + there + noise();
    constexpr Duration kHeld = 2ms;
    Time acked = received + kHeld + kBack + back + noise();
    auto micros = std::chrono::floor<std::chrono::microseconds>(peers(received));
    delay_.onSample({.sentAt = now_,
                     .now = acked,
                     .ackDelay = kHeld,
                     .received = static_cast<uint32_t>(micros.time_since_epoch().count()) %
                                 OneWayDelay::kModulus,
                     .ofRun = ofRun});
    now_ += pause;
  }
  /// Exchanges without queues for so long.
  void rest(Duration time) {
    for (Time end = now_ + time; now_ < end;) exchange(0s, 0s);
  }
  void jump(Duration by) { offset_ += by; }
  void drift(double slope) {
    offset_ += ahead();
    began_ = now_;
    slope_ = slope;
  }

  OneWayDelay& delay() { return delay_; }
  Random& random() { return random_; }
  Duration jitter{};  ///< of each way, at most

 private:
  Duration noise() {
    return jitter == 0s ? Duration{}
                        : Duration(random_.below(static_cast<uint64_t>(jitter.count())));
  }
  Duration ahead() const { return fromSeconds(toSeconds(now_ - began_) * slope_); }
  Time peers(Time own) const {
    return own + offset_ + fromSeconds(toSeconds(own - began_) * slope_);
  }

  Random random_;
  OneWayDelay delay_;
  Time now_ = Time{} + 1000s, began_ = now_;
  Duration offset_;
  double slope_ = 0;
};

void expectNear(Duration value, Duration expected, Duration within) {
  EXPECT_LE(std::chrono::abs(value - expected), within)
      << toMilliseconds(value) << " instead of " << toMilliseconds(expected) << " ms";
}

class OneWayDelays : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, OneWayDelays, testing::Range<uint64_t>(1, 11));

TEST(OneWayDelayTest, NothingIsKnownBeforeSomeSamples) {
  Path path(1);
  for (int i = 0; i < OneWayDelay::kLeastSamples - 1; ++i) {
    path.exchange(0s, 0s);
    EXPECT_FALSE(path.delay().queues());
    EXPECT_FALSE(path.delay().smoothed());
  }
  path.exchange(0s, 0s);
  EXPECT_TRUE(path.delay().queues());
  path.delay().reset();
  EXPECT_FALSE(path.delay().queues());
}

TEST_P(OneWayDelays, TellTheQueuesOfBothWaysWhateverTheClockShows) {
  Random random(GetParam());
  Path path(GetParam(), Duration(random.below(1'000'000'000'000'000)) - 500'000s);
  path.rest(3s);
  for (int i = 0; i < 500; ++i) {
    Duration there = Duration(path.random().below(200'000'000));
    Duration back = Duration(path.random().below(200'000'000));
    path.exchange(there, back);
    ASSERT_TRUE(path.delay().queues());
    OneWayQueues queues = *path.delay().queues();
    expectNear(queues.forward, there, 10us);
    expectNear(queues.reverse, back, 10us);
    expectNear(queues.forward + queues.reverse, there + back, 10us);
  }
}

TEST_P(OneWayDelays, JitterIsNoQueueOfMoreThanItself) {
  Path path(GetParam());
  path.jitter = 3ms;
  path.rest(5s);
  for (int i = 0; i < 500; ++i) {
    path.exchange(30ms, 10ms);
    OneWayQueues queues = path.delay().queues().value();
    expectNear(queues.forward, 30ms, 3200us);  // noise makes a slope, too
    expectNear(queues.reverse, 10ms, 3200us);
  }
}

TEST_P(OneWayDelays, ADriftIsNoQueueOnceItIsLearnt) {
  for (double slope : {OneWayDelay::kMostSlope, -OneWayDelay::kMostSlope}) {
    Path path(GetParam());
    path.jitter = 100us;
    path.rest(5s);
    path.drift(slope);
    for (Time end = path.now() + 120s; path.now() < end;) {
      path.exchange(0s, 0s);
      OneWayQueues queues = path.delay().queues().value();
      EXPECT_LE(queues.forward, 5200us) << "a window's drift";
    }
    EXPECT_NEAR(path.delay().slope(), slope, 30e-6);
    expectNear(path.delay().queues()->forward, 0s, 600us);
    expectNear(path.delay().queues()->reverse, 0s, 600us);
  }
}

TEST_P(OneWayDelays, QueuesAreToldInSpiteOfADrift) {
  Path path(GetParam());
  path.drift(300e-6);
  path.rest(60s);
  for (int i = 0; i < 500; ++i) {
    Duration there = Duration(path.random().below(100'000'000));
    path.exchange(there, 20ms);
    expectNear(path.delay().queues()->forward, there, 1ms);
    expectNear(path.delay().queues()->reverse, 20ms, 1ms);
    if (i % 20 == 0) path.exchange(0s, 0s);
  }
}

TEST_P(OneWayDelays, AJumpOfTheClockIsOverAfterAWindow) {
  for (Duration jump : std::initializer_list<Duration>{3600s, -3600s, 40ms, -40ms, 5ms, -5ms}) {
    Path path(GetParam());
    path.jitter = 200us;
    path.rest(12s);
    path.jump(jump);
    for (Time end = path.now() + 12s; path.now() < end;) {
      path.exchange(0s, 0s);
    }
    expectNear(path.delay().queues()->forward, 0s, 400us);
    expectNear(path.delay().queues()->reverse, 0s, 400us);
  }
}

TEST(OneWayDelayTest, AClockThatJumpsByMoreThanTheRoundTripIsForgotten) {
  for (Duration jump : std::initializer_list<Duration>{3600s, -3600s, 200ms, -200ms}) {
    Path path(1);
    path.rest(5s);
    path.jump(jump);
    path.exchange(0s, 0s);
    EXPECT_FALSE(path.delay().queues()) << "unknown for a moment";
    path.rest(1s);
    expectNear(path.delay().queues().value().forward, 0s, 2us);
  }
}

// As after a suspension of either side: nothing comes for long.
TEST(OneWayDelayTest, APauseLongerThanTheWindowIsForgotten) {
  Path path(1);
  path.rest(5s);
  path.exchange(0s, 0s, OneWayDelay::kWindow + 1s);
  path.exchange(10ms, 0s);
  EXPECT_FALSE(path.delay().queues());
}

TEST(OneWayDelayTest, ALongerRouteIsAQueueForAWindowOnly) {
  Path path(1);
  path.rest(5s);
  for (Time end = path.now() + OneWayDelay::kWindow + OneWayDelay::kSlot; path.now() < end;)
    path.exchange(25ms, 0s);
  expectNear(path.delay().queues()->forward, 0s, 2us);
}

// The time of a run is that of its first packet: the last one seems to have come too early.
TEST(OneWayDelayTest, APacketOfARunMakesNoFloor) {
  Path path(1);
  path.rest(3s);
  for (int i = 0; i < 100; ++i) path.exchange(-400us, 0s, 10ms, true);
  path.exchange(5ms, 0s);
  expectNear(path.delay().queues()->forward, 5ms, 2us);
  for (Time end = path.now() + 2 * OneWayDelay::kWindow; path.now() < end;)
    path.exchange(0s, 0s, 10ms, true);
  EXPECT_FALSE(path.delay().queues()) << "runs alone tell nothing";
}

TEST(OneWayDelayTest, AnAckDelayLongerThanTheRoundTripIsIgnored) {
  Path path(1);
  path.rest(3s);
  OneWayQueues before = path.delay().queues().value();
  path.delay().onSample({.sentAt = path.now(), .now = path.now() + 10ms, .ackDelay = 11ms});
  EXPECT_EQ(path.delay().queues()->forward, before.forward);
  EXPECT_EQ(path.delay().queues()->reverse, before.reverse);
}

// A peer that names any time, also in runs, which make no floors.
TEST(OneWayDelayTest, ATimeThatNoClockCanMeanIsForgotten) {
  Path path(1);
  path.rest(3s);
  for (int i = 0; i < 100; ++i) {
    path.jump(1000s);
    path.exchange(0s, 0s, 1us, true);
    if (path.delay().smoothed()) EXPECT_LE(path.delay().smoothed()->forward, OneWayDelay::kWindow);
  }
  EXPECT_FALSE(path.delay().smoothed());
}

TEST(OneWayDelayTest, TheMeanFollowsLikeTheSmoothedRtt) {
  Path path(1);
  path.rest(3s);
  for (int i = 0; i < 40; ++i) path.exchange(8ms, 16ms);
  expectNear(path.delay().smoothed()->forward, 8ms, 100us);
  expectNear(path.delay().smoothed()->reverse, 16ms, 200us);
}

}  // namespace
}  // namespace braid::one_way_delay_test
