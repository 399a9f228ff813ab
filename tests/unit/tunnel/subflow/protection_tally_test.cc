// The counters of a subflow's protected packets, and the effect of timeouts on recovered packets.

#include "tunnel/subflow/path_estimate.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/subflow/carrying_subflow.h"

namespace braid::protection_tally_test {
namespace {

using ProtectionTallyTest = CarryingSubflow;

// ---- what became of it

TEST_F(ProtectionTallyTest, ProtectionIsUselessWhenThePacketArrives) {
  PacketNumber a = send();
  PacketNumber b = send();
  dataTracker.forbidCopy(unit(a));
  dataTracker.forbidCoding(unit(b));
  PacketNumber c = send();
  now += kRtt;
  ack(a, c);
  EXPECT_EQ(s->status(now).useless, 2u);
  EXPECT_EQ(s->status(now).recovered, 0u);
}

TEST_F(ProtectionTallyTest, ProtectionIsUsefulWhenThePacketIsLostAndItsDataIsThere) {
  for (bool coded : {false, true}) {
    SetUp();
    PacketNumber a = send();
    coded ? dataTracker.forbidCoding(unit(a)) : dataTracker.forbidCopy(unit(a));
    if (coded) {
      EXPECT_TRUE(s->sender().onRecovered(a));
    } else {
      dataTracker.onDelivered(unit(a), false);
    }
    lose(a);
    EXPECT_EQ(s->status(now).recovered, 1u);
    EXPECT_EQ(s->status(now).useless, 0u);
    EXPECT_EQ(s->status(now).decoded, coded ? 1u : 0u);
    EXPECT_EQ(s->status(now).lostPackets, 1u) << "the loss counts all the same";
    EXPECT_EQ(s->path().losses().lost(), 1u);
    EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
  }
}

TEST_F(ProtectionTallyTest, ProtectionThatCameTooLateIsNeither) {
  PacketNumber a = send();
  dataTracker.forbidCopy(unit(a));
  lose(a);
  EXPECT_EQ(s->status(now).recovered, 0u);
  EXPECT_EQ(s->status(now).useless, 0u);
}

TEST_F(ProtectionTallyTest, WhatIsRecoveredTwiceIsNewsOnce) {
  PacketNumber a = send();
  EXPECT_TRUE(s->sender().onRecovered(a));
  EXPECT_FALSE(s->sender().onRecovered(a));
  EXPECT_EQ(s->status(now).decoded, 1u);
}

TEST_F(ProtectionTallyTest, ALateWordOfRecoveryIsNoNews) {
  PacketNumber a = send();
  send();
  ack(a);
  EXPECT_FALSE(s->sender().onRecovered(a));
  EXPECT_EQ(s->status(now).decoded, 0u);
}

TEST_F(ProtectionTallyTest, ARecoveredPacketStaysInFlightUntilItsFateIsKnown) {
  PacketNumber a = send();
  uint64_t before = s->sender().flight().bytes();
  s->sender().onRecovered(a);
  EXPECT_EQ(s->sender().flight().bytes(), before);
  ack(a);
  EXPECT_EQ(s->sender().flight().bytes(), before - 1200);
  EXPECT_EQ(s->path().losses().lost(), 0u);
}

TEST_F(ProtectionTallyTest, CopiesAndParitiesAreCounted) {
  s->sender().tally().onCopySent(100);
  s->sender().tally().onParitySent(1000);
  s->sender().tally().onTailSent(10);
  s->sender().tally().onProtected();
  SubflowStatus status = s->status(now);
  EXPECT_EQ(status.copies, 1u);
  EXPECT_EQ(status.parities, 1u);
  EXPECT_EQ(status.protectionBytes, 1110u);
  EXPECT_EQ(status.protectedPackets, 1u);
}

TEST_F(ProtectionTallyTest, ALossIsTold) {
  PacketNumber a = send();
  lose(a);
  std::vector<SubflowEvent> losses;
  for (SubflowEvent event; events.poll(event);) {
    if (event.kind == SubflowEvent::Kind::kPacketLost) losses.push_back(event);
  }
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].packetNumber, a);
  EXPECT_EQ(losses[0].subflow, 3_subflow);
  EXPECT_EQ(losses[0].lossRate, s->path().losses().recentRate());
}

// ---- timeouts

TEST_F(ProtectionTallyTest, ATimeoutCountsOnlyWhenDataIsMissing) {
  for (bool recovered : {false, true}) {
    SetUp();
    PacketNumber a = send();
    if (recovered) s->sender().onRecovered(a);
    now += 1s;
    s->onTimer(now);
    EXPECT_TRUE(s->mustSend()) << "it is probed either way";
    EXPECT_EQ(s->status(now).timeouts, recovered ? 0u : 1u);
  }
}

TEST_F(ProtectionTallyTest, ALeastRtoPutsTheTimeoutOff) {
  options.minRto = 200ms;
  SetUp();
  Time sent = now;
  send();
  EXPECT_GE(s->nextDeadline(), sent + kRtt + 200ms);
  options.minRto = {};
  SetUp();
  sent = now;
  send();
  EXPECT_LT(s->nextDeadline(), sent + kRtt + 200ms);
}

}  // namespace
}  // namespace braid::protection_tally_test
