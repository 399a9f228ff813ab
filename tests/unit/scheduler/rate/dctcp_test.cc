#include "scheduler/rate/dctcp.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::dctcp_test {
namespace {

TEST(Dctcp, AlphaBeginsAtOne) {
  EXPECT_EQ(Dctcp(kBytes).alpha(), 1);
}

TEST(Dctcp, AlphaTakesOneSixteenthOfEachWindow) {
  Dctcp c(kBytes);
  c.onAck(ackOf(c, 1000, at(1s)));  // ends the first window, at 1.1 s
  EXPECT_DOUBLE_EQ(c.alpha(), 0.9375);
  ackMarked(c, 3000, 1, at(1050ms));
  EXPECT_DOUBLE_EQ(c.alpha(), 0.9375) << "the window is not over";
  ackMarked(c, 1000, 1, at(1100ms));
  EXPECT_DOUBLE_EQ(c.alpha(), 0.9375 * 15 / 16 + 0.5 / 16) << "two of four datagrams were marked";
}

TEST(Dctcp, ACutTakesHalfOfAlpha) {
  Dctcp c(kBytes);
  ackMarked(c, 1000, 1, at(1s));  // slow start: 11000, all of it marked: alpha is 1
  EXPECT_EQ(c.window(), 5500u);
  ackMarked(c, 1000, 0, at(1100ms));  // alpha 15/16, 5500 + 1000 * 1000 / 5500
  EXPECT_EQ(c.window(), 5681u);
  c.onMarks(1, at(1200ms), at(1300ms));
  EXPECT_EQ(c.window(), 3018u);  // 5681.82 * (1 - 15/32)
}

TEST(Dctcp, AlphaIsUpdatedBeforeTheCut) {
  Dctcp c(kBytes);
  ackMarked(c, 2000, 1, at(1s));  // 12000; alpha = 15/16 + 0.5/16 = 0.96875
  EXPECT_EQ(c.window(), 6187u);   // 12000 * (1 - 0.484375)
}

TEST(Dctcp, OneCutPerWindow) {
  Dctcp c(kBytes);
  c.onMarks(1, at(1s), at(1100ms));
  c.onMarks(1, at(1050ms), at(1150ms));
  EXPECT_EQ(c.window(), 5000u);
}

TEST(Dctcp, OneDatagramPerWindow) {
  Dctcp c(kBytes);
  c.onMarks(1, at(1s), at(1100ms));
  c.onAck(ackOf(c, 5000, at(1100ms)));
  EXPECT_EQ(c.window(), 6000u);
}

TEST(Dctcp, ALossHalvesWhateverAlphaIs) {
  Dctcp c(kBytes);
  for (int i = 0; i < 9; ++i) {
    AckSample ack = ackOf(c, 1000, at(1s + i * 100ms));
    ack.inFlight = 0;
    c.onAck(ack);
  }
  ASSERT_LT(c.alpha(), 0.6);
  c.onLoss(lossOf(1, at(2s), at(2100ms)));
  EXPECT_EQ(c.window(), 5000u);
}

TEST(Dctcp, MarksOfMoreThanWasAckedCountAsAll) {
  Dctcp c(kBytes);
  ackMarked(c, 300, 3, at(1s));  // small packets
  EXPECT_EQ(c.alpha(), 1);
}

TEST(Dctcp, ResetForgetsAlpha) {
  Dctcp c(kBytes);
  c.onAck(ackOf(c, 1000, at(1s)));
  c.reset(at(2s));
  EXPECT_EQ(c.alpha(), 1);
}

}  // namespace
}  // namespace braid::dctcp_test
