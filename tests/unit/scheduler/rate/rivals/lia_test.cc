#include "scheduler/rate/rivals/coupled.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::lia_test {
namespace {

struct LiaTest : testing::Test {
  ControllerGroup group;
  Lia first{kBytes, 10, &group}, second{kBytes, 10, &group};
  void SetUp() override {
    for (Lia* c : {&first, &second}) c->setUsable(true, at(0s));
  }
};

TEST_F(LiaTest, AloneItGrowsLikeReno) {
  second.setUsable(false, at(0s));
  first.onMarks(1, at(1s), at(1100ms));
  first.onAck(ackOf(first, 1000, at(1100ms)));
  EXPECT_EQ(first.window(), 5200u);  // 5000 + 1000 * 1000 / 5000
}

TEST_F(LiaTest, TheIncreaseIsAlphaOverTheTotal) {
  first.onMarks(1, at(1s), at(1100ms));
  second.onMarks(1, at(1s), at(1100ms));
  AckSample unused = ackOf(second, 10, at(1100ms));
  unused.inFlight = 0;
  second.onAck(unused);  // only its RTT
  first.onAck(ackOf(first, 1000, at(1100ms)));
  EXPECT_EQ(first.window(),
            5050u);  // alpha = 1/2 (equal windows and RTTs), 1000 * 1000 * 0.5 / 10000
}

TEST_F(LiaTest, NeverMoreThanRenoOnThatPath) {
  // alpha = 2.75 (controller_group_test): 1/8000 of a window, capped at 1/20000.
  ControllerGroup::Member a{.window = 20000, .srtt = 100ms, .usable = true};
  ControllerGroup::Member b{.window = 2000, .srtt = 10ms, .usable = true};
  ControllerGroup two;
  two.join(a);
  two.join(b);
  EXPECT_DOUBLE_EQ(Lia::increase(two, 20000, 1000, 1000), 50);
  EXPECT_DOUBLE_EQ(Lia::increase(two, 2000, 1000, 1000), 125);
}

TEST_F(LiaTest, LossAndMarksHalve) {
  first.onLoss(lossOf(1, at(1s), at(1100ms)));
  EXPECT_EQ(first.window(), 5000u);
  second.onMarks(1, at(1s), at(1100ms));
  EXPECT_EQ(second.window(), 5000u);
}

// AMP section 4.1: MPTCP that reduces the window by a quarter on marks. Losses still halve it.
TEST_F(LiaTest, WhatAMarkTakesIsASetting) {
  Lia quarter(kBytes, 10, &group, 4);
  quarter.onMarks(1, at(1s), at(1100ms));
  EXPECT_EQ(quarter.window(), 7500u);
  Lia lossy(kBytes, 10, &group, 4);
  lossy.onLoss(lossOf(1, at(1s), at(1100ms)));
  EXPECT_EQ(lossy.window(), 5000u);
  auto made = makeController("lia", {.datagram = kBytes, .initialWindow = 10, .liaBeta = 4});
  made->onMarks(1, at(1s), at(1100ms));
  EXPECT_EQ(made->window(), 7500u);
}

TEST_F(LiaTest, SlowStartIsUncoupled) {
  first.onAck(ackOf(first, 4000, at(1s)));
  EXPECT_EQ(first.window(), 14000u);
}

}  // namespace
}  // namespace braid::lia_test
