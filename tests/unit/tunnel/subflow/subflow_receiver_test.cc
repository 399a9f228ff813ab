#include "tunnel/subflow/subflow_receiver.h"

#include <gtest/gtest.h>

namespace braid::subflow_receiver_test {
namespace {

struct SubflowReceiverTest : testing::Test {
  const Time now = Time{} + 1s;
  SubflowReceiver receiver;

  bool receive(uint64_t pn) { return receiver.onPacket(pn, true, Ecn::kNotEct, 100, 40ms, now); }
};

TEST_F(SubflowReceiverTest, AReplayedNumberIsTold) {
  receive(7);
  EXPECT_TRUE(receiver.isReplay(7));
  EXPECT_FALSE(receiver.isReplay(8));
  EXPECT_FALSE(receiver.isReplay(6));
}

TEST_F(SubflowReceiverTest, OnlyThatWithTheLargestNumberIsTheNewest) {
  EXPECT_TRUE(receive(3));
  EXPECT_FALSE(receive(2));
  EXPECT_TRUE(receive(9));
  EXPECT_EQ(receiver.expected(), 10u);
}

TEST_F(SubflowReceiverTest, WhatIsNotUnderstoodIsNeitherAcknowledgedNorTakenAgain) {
  receiver.onMalformed(4);
  EXPECT_TRUE(receiver.isReplay(4));
  EXPECT_FALSE(receiver.acks().pending());
  EXPECT_EQ(receiver.expected(), 0u);
}

TEST_F(SubflowReceiverTest, CountsWhatCame) {
  receive(0);
  receive(1);
  receiver.onMalformed(2);
  EXPECT_EQ(receiver.counts().receivedPackets, 2u);
  EXPECT_EQ(receiver.counts().receivedBytes, 200u);
}

}  // namespace
}  // namespace braid::subflow_receiver_test
