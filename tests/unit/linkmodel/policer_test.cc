// A policer in front of a link, with figures worked out by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/linkmodel/link_test_support.h"

namespace braid::policer_test {
namespace {

using testing::ElementsAre;

// 8 Mbit/s: 1000 bytes of tokens a millisecond.
constexpr Policer kMegabyte{.bitsPerSecond = 8e6, .burstBytes = 3000};

TEST(PolicerBucket, BeginsFullAndRefillsAtItsRate) {
  PolicerBucket bucket(kMegabyte, at(1s));
  EXPECT_TRUE(bucket.take(2000, at(1s)));
  EXPECT_TRUE(bucket.take(1000, at(1s)));
  EXPECT_FALSE(bucket.take(1, at(1s)));
  EXPECT_FALSE(bucket.take(501, at(1s + 500us)));
  EXPECT_TRUE(bucket.take(500, at(1s + 500us)));
  EXPECT_TRUE(bucket.take(1000, at(1s + 1500us)));
}

TEST(PolicerBucket, HoldsNoMoreThanItsBurst) {
  PolicerBucket bucket(kMegabyte, at(0s));
  EXPECT_FALSE(bucket.take(3001, at(10s)));
  EXPECT_TRUE(bucket.take(3000, at(10s)));
  EXPECT_FALSE(bucket.take(1, at(10s)));
}

TEST(PolicerBucket, WhatIsDroppedTakesNothing) {
  PolicerBucket bucket(kMegabyte, at(0s));
  EXPECT_FALSE(bucket.take(4000, at(0s)));
  EXPECT_TRUE(bucket.take(3000, at(0s)));
}

TEST(PolicerBucket, PassesItsRateExactly) {
  PolicerBucket bucket({.bitsPerSecond = 7e6, .burstBytes = 3000}, at(0s));
  size_t passed = 0;
  for (int i = 0; i < 1'000'000; ++i)
    passed += bucket.take(1500, at(i * 10us));  // 10 s of 1.2 Gbit/s
  EXPECT_NEAR(static_cast<double>(passed) * 12000, 7e6 * 10 + 24000, 12000);
}

TEST(Policer, DropsBeforeTheQueueAndIsCounted) {
  LinkOptions options{.rateBitsPerSecond = 8e6, .delay = 10ms, .queueBytes = 1000};
  options.policer = kMegabyte;
  options.dropPackets = {4};
  Link<int> link(options, 1);
  for (int i = 1; i <= 2; ++i) EXPECT_TRUE(link.push(i, 1000, at(0ms)));
  EXPECT_FALSE(link.push(3, 1000, at(0ms)));  // dropped by the queue, but took the last tokens
  EXPECT_FALSE(link.push(4, 1000, at(0ms)));
  EXPECT_TRUE(link.push(5, 1000, at(1ms)));
  EXPECT_THAT(arrivals(link),
              ElementsAre(Arrival{1, at(11ms)}, Arrival{2, at(12ms)}, Arrival{5, at(13ms)}));
  LinkStats s = link.stats(at(1s));
  EXPECT_EQ(s.dropQueue, (LinkCount{1, 1000}));
  EXPECT_EQ(s.dropPolicer, (LinkCount{1, 1000}));
  EXPECT_EQ(s.dropExact, LinkCount{});
  expectConserved(s);
}

TEST(Policer, IsOffByDefaultAndWithARateOfZero) {
  LinkOptions options;
  EXPECT_EQ(options.policer.bitsPerSecond, 0);
  options.policer.burstBytes = 1;
  Link<int> link(options, 1);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(link.push(i, 1500, at(0s)));
}

TEST(Policer, ANewOneBeginsFullOthersGoOn) {
  LinkOptions options;
  options.policer = kMegabyte;
  Link<int> link(options, 1);
  EXPECT_TRUE(link.push(1, 3000, at(0ms)));
  options.delay = 5ms;
  link.setOptions(options, at(1ms));
  EXPECT_FALSE(link.push(2, 1001, at(1ms)));
  options.policer.burstBytes = 4000;
  link.setOptions(options, at(1ms));
  EXPECT_TRUE(link.push(3, 4000, at(1ms)));
  options.policer = {};
  link.setOptions(options, at(1ms));
  EXPECT_TRUE(link.push(4, 4000, at(1ms)));
}

TEST(Link, TellsHowLongEachPacketWaited) {
  LinkOptions options{
      .rateBitsPerSecond = 8e6, .delay = 10ms, .queueBytes = 2000, .dropPackets = {2}};
  Link<int> link(options, 1);
  std::vector<std::pair<Duration, bool>> seen;
  link.onBegin = [&](Duration waited, bool arrives) { seen.emplace_back(waited, arrives); };
  for (int i = 1; i <= 4; ++i) link.push(i, 1000, at(0ms));  // the fourth finds the queue full
  EXPECT_EQ(seen.size(), 1u);
  link.stats(at(1ms) - 1ns);
  EXPECT_EQ(seen.size(), 1u);
  link.stats(at(2ms));
  EXPECT_THAT(
      seen, ElementsAre(std::pair<Duration, bool>(0ms, true), std::pair<Duration, bool>(1ms, false),
                        std::pair<Duration, bool>(2ms, true)));
}

}  // namespace
}  // namespace braid::policer_test
