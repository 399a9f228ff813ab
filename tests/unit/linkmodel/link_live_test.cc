// Changes of a link's options while packets are inside, and complete runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "simnet/link/link.h"
#include "tests/unit/linkmodel/link_test_support.h"

namespace braid::link_live_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const LinkOptions kMegabyte{.rateBitsPerSecond = 8e6, .delay = 10ms};  // 1000 bytes take 1 ms

LinkOptions with(LinkOptions options, auto change) {
  change(options);
  return options;
}

TEST(LinkLive, NewRateKeepsTheBitsThatHaveLeft) {
  Link<int> link(kMegabyte, 1);
  for (int i = 1; i <= 3; ++i) link.push(i, 1000, at(0ms));
  // Halfway through 2: the other half takes 5 ms at a tenth of the rate.
  link.setOptions(with(kMegabyte, [](LinkOptions& o) { o.rateBitsPerSecond = 0.8e6; }), at(1500us));
  EXPECT_THAT(arrivals(link),
              ElementsAre(Arrival{1, at(11ms)}, Arrival{2, at(16500us)}, Arrival{3, at(26500us)}));
}

TEST(LinkLive, RateChangesTwiceInOnePacket) {
  Link<int> link(kMegabyte, 1);
  link.push(1, 1000, at(0ms));
  link.setOptions(with(kMegabyte, [](LinkOptions& o) { o.rateBitsPerSecond = 4e6; }), at(500us));
  link.setOptions(kMegabyte, at(1ms));  // a quarter is left
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{1, at(11250us)}));
}

TEST(LinkLive, LostPacketInTransmissionStillHoldsTheRate) {
  Link<int> link(with(kMegabyte, [](LinkOptions& o) { o.dropPackets = {1}; }), 1);
  EXPECT_FALSE(link.push(1, 1000, at(0ms)));
  EXPECT_TRUE(link.push(2, 1000, at(0ms)));
  link.setOptions(with(kMegabyte, [](LinkOptions& o) { o.rateBitsPerSecond = 4e6; }), at(500us));
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{2, at(13500us)}));
}

TEST(LinkLive, UnlimitedEmptiesTheQueue) {
  Link<int> link(kMegabyte, 1);
  for (int i = 1; i <= 3; ++i) link.push(i, 1000, at(0ms));
  link.setOptions({.delay = 10ms}, at(500us));
  EXPECT_EQ(link.stats(at(500us)).queueBytes, 0u);
  link.push(4, 1000, at(500us));
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{1, at(10500us)}, Arrival{2, at(10500us)},
                                          Arrival{3, at(10500us)}, Arrival{4, at(10500us)}));
}

TEST(LinkLive, ShorterDelayLetsNothingOvertake) {
  Link<int> link({.delay = 50ms}, 1);
  link.push(1, 100, at(0ms));
  link.setOptions({.delay = 5ms}, at(10ms));
  link.push(2, 100, at(10ms));
  link.push(3, 100, at(60ms));
  EXPECT_THAT(arrivals(link),
              ElementsAre(Arrival{1, at(50ms)}, Arrival{2, at(50ms)}, Arrival{3, at(65ms)}));
}

TEST(LinkLive, DelayChangesWhatWaits) {
  Link<int> link(kMegabyte, 1);
  for (int i = 1; i <= 2; ++i) link.push(i, 1000, at(0ms));
  link.setOptions(with(kMegabyte, [](LinkOptions& o) { o.delay = 30ms; }), at(1ms));
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{1, at(11ms)}, Arrival{2, at(32ms)}));
}

TEST(LinkLive, HeldPacketFollowsTheRate) {
  LinkOptions held = with(kMegabyte, [](LinkOptions& o) { o.reorder = 1, o.reorderDelay = 100ms; });
  Link<int> link(held, 1);
  link.push(1, 1000, at(0ms));
  link.push(2, 1000, at(0ms));
  link.setOptions(with(held, [](LinkOptions& o) { o.rateBitsPerSecond = 4e6; }), at(1ms));
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{1, at(111ms)}, Arrival{2, at(113ms)}));
}

TEST(LinkLive, DownLosesWhatIsNotOnTheWireYet) {
  Link<int> link(kMegabyte, 1);
  for (int i = 1; i <= 4; ++i) link.push(i, 1000, at(0ms));
  LinkOptions down = with(kMegabyte, [](LinkOptions& o) { o.down = true; });
  link.setOptions(down, at(1500us));  // 1 is out, 2 in transmission, 3 and 4 wait
  EXPECT_FALSE(link.push(5, 1000, at(2ms)));
  LinkStats s = link.stats(at(2ms));
  EXPECT_EQ(s.dropDown, (LinkCount{4, 4000}));
  EXPECT_EQ(s.queueBytes, 0u);
  EXPECT_EQ(s.inside, 1u);
  expectConserved(s);
  link.setOptions(kMegabyte, at(3ms));
  EXPECT_TRUE(link.push(6, 1000, at(3ms)));
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{1, at(11ms)}, Arrival{6, at(14ms)}));
  expectConserved(link.stats(at(1s)));
}

TEST(LinkLive, DownFromTheStart) {
  Link<int> link({.down = true}, 1);
  EXPECT_FALSE(link.push(1, 100, at(0s)));
  EXPECT_EQ(link.nextDelivery(), kNever);
  EXPECT_EQ(link.stats(at(0s)).dropDown, (LinkCount{1, 100}));
}

TEST(LinkLive, PublishesWhenItDeliversNext) {
  Random random(7);
  Link<int> link({}, 1);
  Time slots[2]{};
  size_t at = 0;
  link.publish(&slots[at]);
  EXPECT_EQ(slots[at], kNever);
  Time now{};
  for (int i = 0; i < 20'000; ++i) {
    now += Duration(random.below(300'000));
    switch (random.below(8)) {
      case 0:
        link.setOptions({.rateBitsPerSecond = static_cast<double>(random.below(3)) * 20e6,
                         .delay = Duration(random.below(3'000'000)),
                         .jitter = Duration(random.below(2) * 500'000),
                         .loss = 0.1,
                         .duplicate = 0.1,
                         .reorder = 0.1,
                         .reorderDelay = 2ms,
                         .down = random.chance(0.1)},
                        now);
        break;
      case 1:
        link.stats(now);
        break;
      case 2:
        at = 1 - at;
        link.publish(&slots[at]);
        slots[1 - at] = Time{};
        break;
      case 3:
      case 4:
        while (link.pop(now)) {
        }
        break;
      default:
        link.push(i, 1 + random.below(1500), now);
    }
    ASSERT_EQ(slots[at], link.nextDelivery()) << i;
    ASSERT_EQ(slots[1 - at], Time{}) << "nothing is written to the slot of before";
  }
}

TEST(LinkLive, SmallerQueueKeepsWhatItHolds) {
  Link<int> link(with(kMegabyte, [](LinkOptions& o) { o.queueBytes = 4000; }), 1);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(link.push(i, 1000, at(0ms)));
  link.setOptions(with(kMegabyte, [](LinkOptions& o) { o.queueBytes = 2000; }), at(0ms));
  EXPECT_FALSE(link.push(5, 1000, at(2ms)));
  EXPECT_TRUE(link.push(6, 1000, at(3ms)));
  EXPECT_THAT(ids(link), ElementsAre(0, 1, 2, 3, 4, 6));
}

TEST(LinkLive, ExactDropsCountFromTheLink) {
  Link<int> link({.dropPackets = {2, 4}, .mtu = 500}, 1);
  link.push(1, 1000, at(0s));  // too large, but counted
  for (int i = 2; i <= 5; ++i) link.push(i, 100, at(0s));
  EXPECT_THAT(ids(link), ElementsAre(3, 5));
  // the same list: the count continues
  link.setOptions({.delay = 1ms, .dropPackets = {2, 4}}, at(0s));
  for (int i = 1; i <= 5; ++i) link.push(i, 100, at(0s));
  EXPECT_THAT(ids(link), ElementsAre(1, 2, 3, 4, 5));
  link.restartDropCount();
  for (int i = 1; i <= 5; ++i) link.push(i, 100, at(1s));
  EXPECT_THAT(ids(link), ElementsAre(1, 3, 5));
  EXPECT_EQ(link.stats(at(2s)).dropExact.packets, 4u);
}

TEST(LinkLive, LossUsesTheRate) {
  Link<int> link({.rateBitsPerSecond = 8e6, .dropPackets = {1}}, 1);
  link.push(1, 1000, at(0ms));
  link.push(2, 1000, at(0ms));
  EXPECT_THAT(arrivals(link), ElementsAre(Arrival{2, at(2ms)}));
}

TEST(LinkLive, TraceLoopsFromTheTimeItWasSet) {
  LinkOptions trace{.trace = {{10ms, 8e6}, {10ms, 0}}, .queueBytes = 1 << 20};
  Link<int> link({}, 1);
  link.setOptions(trace, at(105ms));
  for (int i = 0; i < 25; ++i) link.push(i, 1000, at(105ms));
  std::vector<Arrival> got = arrivals(link);
  ASSERT_EQ(got.size(), 25u);
  EXPECT_EQ(got[0], (Arrival{0, at(106ms)}));
  EXPECT_EQ(got[9], (Arrival{9, at(115ms)}));
  EXPECT_EQ(got[10], (Arrival{10, at(126ms)}));
  EXPECT_EQ(got[24], (Arrival{24, at(150ms)}));
}

TEST(LinkLive, UnrelatedChangeLeavesTheTraceAlone) {
  LinkOptions trace{.trace = {{10ms, 8e6}, {10ms, 0.8e6}}, .queueBytes = 1 << 20};
  Link<int> plain(trace, 1);
  Link<int> changed(trace, 1);
  for (int i = 0; i < 15; ++i) {
    plain.push(i, 1000, at(0ms));
    changed.push(i, 1000, at(0ms));
  }
  for (int i = 1; i < 40; ++i) {
    trace.mtu = static_cast<size_t>(i + 5000);
    trace.rateBitsPerSecond = i;  // the trace overrides it
    changed.setOptions(trace, at(i * 700us));
  }
  std::vector<Arrival> a = arrivals(plain);
  std::vector<Arrival> b = arrivals(changed);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_LE(abs(a[i].time - b[i].time), 1ns) << i;
}

LinkOptions randomOptions(Random& random) {
  LinkOptions o;
  auto maybe = [&](double p) { return random.chance(0.5) ? p : 0.0; };
  o.rateBitsPerSecond = random.chance(0.8) ? 1e5 + random.uniform() * 1e7 : 0;
  if (random.chance(0.2)) o.trace = {{5ms, 1e6}, {3ms, 0}, {9ms, 2e7}};
  o.delay = Duration(random.below(20'000'000));
  o.jitter = Duration(random.chance(0.5) ? random.below(5'000'000) : 0);
  o.queueBytes = random.below(50'000);
  o.loss = maybe(0.1);
  o.bursts.goodToBad = maybe(0.05);
  o.bursts.badToGood = 0.3;
  o.mtu = random.chance(0.3) ? 1200 : 0;
  o.duplicate = maybe(0.1);
  o.reorder = maybe(0.2);
  o.reorderDelay = Duration(random.below(10'000'000));
  o.down = random.chance(0.1);
  return o;
}

/// A run with random packets and changes of the options. Returns the arrivals with their times.
/// Checks the invariants at every step.
std::vector<Arrival> randomRun(uint64_t seed, uint64_t linkSeed) {
  Random random(seed);
  Link<int> link(randomOptions(random), linkSeed);
  Time now{};
  std::vector<Arrival> got;
  auto popAll = [&] {
    for (Arrival a : arrivals(link, now)) {
      EXPECT_TRUE(got.empty() || got.back().time <= a.time);
      got.push_back(a);
    }
  };
  for (int i = 0; i < 2000; ++i) {
    now += Duration(random.below(1'500'000));
    popAll();
    EXPECT_EQ(link.pop(now), std::nullopt);
    if (random.chance(0.01)) link.setOptions(randomOptions(random), now);
    bool waits = link.stats(now).queueBytes > 0;
    bool accepted = link.push(i, 40 + random.below(1461), now);
    LinkStats s = link.stats(now);
    expectConserved(s);
    if (waits && accepted) {
      size_t limit =
          link.options().queueBytes ? link.options().queueBytes : defaultQueueBytes(link.options());
      EXPECT_LE(s.queueBytes, limit);
    }
  }
  now += 24h;
  popAll();
  LinkStats s = link.stats(now);
  EXPECT_EQ(s.inside, 0u);
  EXPECT_EQ(s.queueBytes, 0u);
  EXPECT_EQ(s.delivered.packets, got.size());
  expectConserved(s);
  return got;
}

TEST(LinkProperty, ConservesBoundsAndRepeats) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<Arrival> first = randomRun(seed, seed);
    EXPECT_EQ(first, randomRun(seed, seed));
    EXPECT_FALSE(first.empty());
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_NE(randomRun(1, 1), randomRun(1, 2));
}

TEST(LinkProperty, WithoutReorderingOrderHoldsThroughEveryChange) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    auto options = [&] {
      return with(randomOptions(random), [](LinkOptions& o) { o.reorder = o.duplicate = 0; });
    };
    Link<int> link(options(), seed);
    Time now{};
    for (int i = 0; i < 1000; ++i) {
      now += Duration(random.below(500'000));
      if (random.chance(0.02)) link.setOptions(options(), now);
      link.push(i, 40 + random.below(1461), now);
    }
    std::vector<int> got = ids(link);
    EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  }
}

}  // namespace
}  // namespace braid::link_live_test
