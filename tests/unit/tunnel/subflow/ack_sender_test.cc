#include "tunnel/subflow/acks.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::ack_sender_test {
namespace {

struct AckSenderTest : testing::Test {
  AckSender acks;
  Time now = Time{} + 1s;
};

TEST_F(AckSenderTest, WaitsForTheEighthPacketOrFiveMilliseconds) {
  for (PacketNumber pn{}; pn < 7_pn; ++pn) acks.onPacket(pn, true, Ecn::kEct0, 100ms, now);
  EXPECT_TRUE(acks.pending());
  EXPECT_FALSE(acks.due(now));
  EXPECT_EQ(acks.deadline(), now + kMaxAckDelay);
  EXPECT_TRUE(acks.due(now + kMaxAckDelay));
  acks.onPacket(7_pn, true, Ecn::kEct0, 100ms, now);
  EXPECT_TRUE(acks.due(now));
  acks.onSent();
  EXPECT_FALSE(acks.pending());
  EXPECT_EQ(acks.deadline(), kNever);
}

TEST_F(AckSenderTest, AGapIsToldAtOnce) {
  acks.onPacket(0_pn, true, Ecn::kEct0, 100ms, now);
  EXPECT_FALSE(acks.due(now));
  acks.onPacket(2_pn, true, Ecn::kEct0, 100ms, now);
  EXPECT_TRUE(acks.due(now));
  acks.onSent();
  // fills the gap, which the sender must also learn
  acks.onPacket(1_pn, true, Ecn::kEct0, 100ms, now);
  EXPECT_TRUE(acks.due(now));
}

TEST_F(AckSenderTest, ALossIsToldWithTheThirdPacketAfterIt) {
  acks.onPacket(0_pn, true, Ecn::kEct0, 100ms, now);
  for (PacketNumber pn : {3_pn, 4_pn}) {  // 1 and 2 are missing; 5 - 3 = 2
    acks.onPacket(pn, true, Ecn::kEct0, 100ms, now);
    EXPECT_FALSE(acks.tellsLoss()) << pn.value();
    acks.onSent();
  }
  acks.onPacket(5_pn, true, Ecn::kEct0, 100ms, now);
  EXPECT_TRUE(acks.tellsLoss());
  EXPECT_TRUE(acks.due(now));
  acks.onSent();
  EXPECT_FALSE(acks.tellsLoss());
  acks.onPacket(6_pn, true, Ecn::kEct0, 100ms, now);
  EXPECT_FALSE(acks.due(now)) << "once";
}

TEST_F(AckSenderTest, ACongestionMarkIsToldAtOnce) {
  acks.onPacket(0_pn, true, Ecn::kCe, 100ms, now);
  EXPECT_TRUE(acks.due(now));
  EXPECT_EQ(acks.frame(0_subflow, now).ecn.ce, 1u);
}

TEST_F(AckSenderTest, PacketsThatDoNotAskAreReportedButNotAnswered) {
  acks.onPacket(0_pn, false, Ecn::kNotEct, 100ms, now);
  EXPECT_FALSE(acks.pending());
  EXPECT_EQ(acks.expected(), 1_pn);
  acks.onPacket(1_pn, true, Ecn::kEct0, 100ms, now);
  AckFrame frame = acks.frame(3_subflow, now + 2ms);
  EXPECT_EQ(frame.subflow, 3_subflow);
  EXPECT_EQ(frame.delay, std::chrono::microseconds(2000));
  ASSERT_EQ(frame.count, 1u);
  EXPECT_EQ(frame.ranges[0].first, 0_pn);
  EXPECT_EQ(frame.ranges[0].last, 1_pn);
  EXPECT_EQ(frame.ecn.ect0, 1u);
}

TEST_F(AckSenderTest, TheDelayIsThatOfTheLargest) {
  acks.onPacket(5_pn, true, Ecn::kEct0, 100ms, now);
  acks.onPacket(4_pn, true, Ecn::kEct0, 100ms, now + 3ms);
  EXPECT_EQ(acks.frame(0_subflow, now + 4ms).delay, std::chrono::microseconds(4000));
}

// Each missing packet is a gap, and every ACK would report all of them.
TEST_F(AckSenderTest, NumbersThatTheSenderLeftOutAreNotToldForever) {
  for (PacketNumber pn{}; pn < 100000_pn; ++pn) {
    if (pn.value() % 2000 != 0) acks.onPacket(pn, true, Ecn::kEct0, 100ms, now);
    ASSERT_LE(acks.frame(0_subflow, now).count, AckSender::kReach / 2000 + 2);
  }
  AckFrame frame = acks.frame(0_subflow, now);
  EXPECT_EQ(frame.ranges[frame.count - 1].first, PacketNumber(100000 - AckSender::kReach));
}

TEST(AckSender, OnAFastPathItWaitsForAQuarterOfTheRtt) {
  AckSender acks;
  Time now{};
  acks.onPacket(0_pn, true, Ecn::kEct0, 280us, now);
  EXPECT_EQ(acks.deadline(), now + 70us);
}

TEST(AckSender, FiveMillisecondsAreTheMost) {
  for (auto [rtt, wait] :
       {std::pair<Duration, Duration>{20ms, 5ms}, {19ms, 4750us}, {2s, 5ms}, {0ms, 0ms}}) {
    AckSender acks;
    Time now{};
    acks.onPacket(0_pn, true, Ecn::kEct0, rtt, now);
    EXPECT_EQ(acks.deadline(), now + wait);
    EXPECT_TRUE(acks.due(now + wait));
  }
}

TEST(AckSender, TheFirstPacketThatAsksBeginsTheWait) {
  AckSender acks;
  Time now{};
  acks.onPacket(0_pn, true, Ecn::kEct0, 280us, now);
  acks.onPacket(1_pn, true, Ecn::kEct0, 280us, now + 50us);
  EXPECT_EQ(acks.deadline(), now + 70us);
}

TEST_F(AckSenderTest, TellsWhenTheLargestCameOnlyWhenAsked) {
  RecordProperty("rule", "ack.time ack.asked");
  now = Time{} + 3000s;  // beyond the modulus
  acks.onPacket(0_pn, true, Ecn::kNotEct, 100ms, now - 250us);
  EXPECT_FALSE(acks.frame(0_subflow, now).received) << "an older release gets what it knows";
  acks.tellTimes();
  AckFrame frame = acks.frame(0_subflow, now + 1ms);
  ASSERT_TRUE(frame.received);
  EXPECT_EQ(frame.received->micros, 3'000'000'000u - 250 - ReceiveTime::kModulus);
  EXPECT_FALSE(frame.received->ofRun) << "the time is this packet's own";
  EXPECT_EQ(frame.delay, 1250us) << "since the packet came";
  acks.onPacket(2_pn, true, Ecn::kNotEct, 100ms, now + 2ms);
  acks.onPacket(1_pn, true, Ecn::kNotEct, 100ms, now + 3ms);
  frame = acks.frame(0_subflow, now + 4ms);
  EXPECT_EQ(frame.received->micros, 3'000'002'000u - ReceiveTime::kModulus) << "of the largest";
}

}  // namespace
}  // namespace braid::ack_sender_test
