#include "tunnel/subflow/mtu_discovery.h"

#include <gtest/gtest.h>

namespace braid::mtu_discovery_test {
namespace {

constexpr Duration kRtt = 20ms;

/// Answers probes like a path that carries up to `limit` bytes. Returns the number of probes sent.
int search(MtuDiscovery& mtu, size_t limit, Time& now) {
  int probes = 0;
  while (size_t size = mtu.pollProbe()) {
    ++probes;
    mtu.onProbeSent(size, 2 * kRtt, now);
    if (size <= limit) {
      now += kRtt;
      mtu.onProbeAcked(size, now);
    } else {
      now = mtu.nextDeadline();
      mtu.onTimer(now);
    }
    if (probes > 100) break;
  }
  return probes;
}

TEST(MtuDiscovery, FindsTheTopInOneProbe) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  EXPECT_EQ(mtu.current(), MtuDiscovery::kMinDatagram) << "nothing is taken for granted";
  EXPECT_EQ(search(mtu, 9000, now), 1);
  EXPECT_EQ(mtu.current(), 1472u);
  EXPECT_EQ(mtu.nextDeadline(), kNever);
}

TEST(MtuDiscovery, FindsEveryLimitWithinThePrecision) {
  for (size_t limit = MtuDiscovery::kMinDatagram; limit <= 1472; ++limit) {
    Time now{};
    MtuDiscovery mtu(1472, 0);
    int probes = search(mtu, limit, now);
    EXPECT_LE(mtu.current(), limit);
    EXPECT_GT(mtu.current() + MtuDiscovery::kPrecision, limit) << limit;
    EXPECT_LE(probes, 3 * 9)
        << limit;  // the top, the base, log2(157 / 8) + 1 steps, each at most MAX_PROBES
  }
}

TEST(MtuDiscovery, ThreeLostProbesRuleASizeOut) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  for (int i = 0; i < MtuDiscovery::kMaxProbes; ++i) {
    EXPECT_EQ(mtu.pollProbe(), 1472u);
    mtu.onProbeSent(1472, kRtt, now);
    EXPECT_EQ(mtu.pollProbe(), 0u) << "one probe at a time";
    mtu.onProbeLost(1472, now);
  }
  EXPECT_LT(mtu.pollProbe(), 1472u);
}

TEST(MtuDiscovery, AFixedSizeIsNeverProbed) {
  MtuDiscovery mtu(1472, 1372);
  Time now{};
  EXPECT_EQ(mtu.current(), 1372u);
  EXPECT_EQ(mtu.pollProbe(), 0u);
  for (int i = 0; i < 50; ++i) mtu.onLost(1372, now);
  EXPECT_EQ(mtu.current(), 1372u);
}

TEST(MtuDiscovery, NothingIsLargerThanThePeerTakes) {
  for (size_t known : {size_t{1200}, size_t{1472}}) {
    SCOPED_TRACE(known);
    Time now{};
    MtuDiscovery mtu(1472, 0);
    if (known == 1472) search(mtu, known, now);
    mtu.setLimit(1300);
    EXPECT_LE(mtu.current(), 1300u);
    search(mtu, 9000, now);
    EXPECT_EQ(mtu.current(), 1300u);
    mtu.restart();
    search(mtu, 9000, now);
    EXPECT_EQ(mtu.current(), 1300u) << "for good";
    mtu.setLimit(1472);
    EXPECT_EQ(mtu.pollProbe(), 0u) << "a limit is not raised";
  }
  MtuDiscovery fixed(1472, 1372);
  fixed.setLimit(1300);
  EXPECT_EQ(fixed.current(), 1300u);
  fixed.setLimit(500);
  EXPECT_EQ(fixed.current(), MtuDiscovery::kMinDatagram);
}

TEST(MtuDiscovery, AProbeThatIsTooLargeForThePeerIsForgotten) {
  Time now{};
  MtuDiscovery mtu(9000, 0);
  mtu.onProbeSent(mtu.pollProbe(), kRtt, now);
  mtu.setLimit(1400);
  EXPECT_EQ(mtu.pollProbe(), 1400u);
  mtu.onProbeAcked(9000, now);
  EXPECT_EQ(mtu.current(), MtuDiscovery::kMinDatagram) << "nobody may send this";
  mtu.onProbeSent(1400, kRtt, now);
  mtu.onProbeAcked(1400, now);
  EXPECT_EQ(mtu.current(), 1400u);
}

TEST(MtuDiscovery, TriesToRaiseAfterTenMinutes) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  search(mtu, 1400, now);
  ASSERT_NE(mtu.nextDeadline(), kNever);
  EXPECT_GE(mtu.nextDeadline() - now, MtuDiscovery::kRaiseInterval - 1s);
  now = mtu.nextDeadline();
  mtu.onTimer(now);
  search(mtu, 1472, now);
  EXPECT_EQ(mtu.current(), 1472u);
}

TEST(MtuDiscovery, FullSizeLossesWhileSmallOnesArriveAreABlackHole) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  search(mtu, 1472, now);
  for (int i = 0; i < MtuDiscovery::kBlackHoleLosses; ++i) {
    mtu.onLost(1472, now);
    mtu.onAcked(100);
  }
  EXPECT_EQ(mtu.current(), MtuDiscovery::kMinDatagram);
  search(mtu, 1250, now);
  EXPECT_LE(mtu.current(), 1250u);
  EXPECT_GT(mtu.current() + MtuDiscovery::kPrecision, 1250u);
}

TEST(MtuDiscovery, LossOfEverythingIsNoBlackHole) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  search(mtu, 1472, now);
  for (int i = 0; i < 1000; ++i) mtu.onLost(1472, now);
  EXPECT_EQ(mtu.current(), 1472u);
}

TEST(MtuDiscovery, WhatASilentPathLostCountsThreeTimesEachSilence) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  search(mtu, 1472, now);
  auto fallSilent = [&] {
    now += 1s;
    mtu.onPathUp(now);
    for (int i = 0; i < 20; ++i) mtu.onLost(1472, now - 1ns);
    mtu.onAcked(100);
  };
  for (int i = 0; i < 3; ++i) fallSilent();
  EXPECT_EQ(mtu.current(), 1472u) << "3 * 3 losses";
  fallSilent();
  EXPECT_EQ(mtu.current(), MtuDiscovery::kMinDatagram) << "10";
}

TEST(MtuDiscovery, AnArrivingFullSizePacketEndsTheSuspicion) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  search(mtu, 1472, now);
  for (int i = 0; i < 1000; ++i) {
    mtu.onLost(1472, now);
    mtu.onAcked(100);
    if (i % 5 == 0) mtu.onAcked(1472);
  }
  EXPECT_EQ(mtu.current(), 1472u);
}

TEST(MtuDiscovery, AKernelThatRefusesASizeRulesItOut) {
  Time now{};
  MtuDiscovery mtu(1472, 0);
  mtu.onProbeSent(mtu.pollProbe(), kRtt, now);
  mtu.onTooBig(1472, now);
  EXPECT_EQ(mtu.pollProbe(), MtuDiscovery::kBaseDatagram) << "the base is next";
  EXPECT_EQ(mtu.current(), MtuDiscovery::kMinDatagram);
}

}  // namespace
}  // namespace braid::mtu_discovery_test
