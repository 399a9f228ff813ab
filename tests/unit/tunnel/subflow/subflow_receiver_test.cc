#include "tunnel/subflow/acks.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::subflow_receiver_test {
namespace {

struct SubflowReceiverTest : testing::Test {
  const Time now = Time{} + 1s;
  SubflowReceiver receiver;

  bool receive(PacketNumber pn) {
    return receiver.onPacket(pn, true, Ecn::kNotEct, 100, 40ms, now);
  }
};

TEST_F(SubflowReceiverTest, AReplayedNumberIsTold) {
  receive(7_pn);
  EXPECT_TRUE(receiver.isReplay(7_pn));
  EXPECT_FALSE(receiver.isReplay(8_pn));
  EXPECT_FALSE(receiver.isReplay(6_pn));
}

TEST_F(SubflowReceiverTest, OnlyThatWithTheLargestNumberIsTheNewest) {
  EXPECT_TRUE(receive(3_pn));
  EXPECT_FALSE(receive(2_pn));
  EXPECT_TRUE(receive(9_pn));
  EXPECT_EQ(receiver.expected(), 10_pn);
}

TEST_F(SubflowReceiverTest, WhatIsNotUnderstoodIsNeitherAcknowledgedNorTakenAgain) {
  receiver.onMalformed(4_pn);
  EXPECT_TRUE(receiver.isReplay(4_pn));
  EXPECT_FALSE(receiver.acks().pending());
  EXPECT_EQ(receiver.expected(), 0_pn);
}

TEST_F(SubflowReceiverTest, CountsWhatCame) {
  receive(0_pn);
  receive(1_pn);
  receiver.onMalformed(2_pn);
  EXPECT_EQ(receiver.counts().receivedPackets, 2u);
  EXPECT_EQ(receiver.counts().receivedBytes, 200u);
}

}  // namespace
}  // namespace braid::subflow_receiver_test
