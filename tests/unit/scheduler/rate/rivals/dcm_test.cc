#include "scheduler/rate/rivals/coupled.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::dcm_test {
namespace {

struct DcmTest : testing::Test {
  ControllerGroup group;
  Dcm first{kBytes, 10, &group}, second{kBytes, 10, &group};
  void SetUp() override {
    for (Dcm* c : {&first, &second}) c->setUsable(true, at(0s));
  }
};

TEST_F(DcmTest, IncreasesLikeMptcp) {
  for (Dcm* c : {&first, &second}) {
    ackMarked(*c, 1000, 1, at(1s));  // 11000, alpha 1: 5500
  }
  ASSERT_EQ(group.totalWindow(), 11000);
  first.onAck(ackOf(first, 1000, at(1100ms)));
  EXPECT_EQ(first.window(), 5545u);  // a = 1/2: 1000 * 1000 * 0.5 / 11000
}

TEST_F(DcmTest, CutsByHalfOfItsAlpha) {
  ackMarked(first, 2000, 1, at(1s));  // 12000, alpha 0.96875
  EXPECT_EQ(first.window(), 6187u);
}

TEST_F(DcmTest, EachSubflowHasItsOwnAlpha) {
  ackMarked(first, 1000, 1, at(1s));
  second.onAck(ackOf(second, 1000, at(1s)));
  EXPECT_EQ(first.alpha(), 1);
  EXPECT_EQ(second.alpha(), 0.9375);
}

TEST_F(DcmTest, ALossHalves) {
  first.onLoss(lossOf(1, at(1s), at(1100ms)));
  EXPECT_EQ(first.window(), 5000u);
}

TEST_F(DcmTest, NothingIsSuppressed) {
  Time t = squeeze(first);
  squeeze(second);
  for (int i = 0; i < 20; ++i, t += 100ms) ackMarked(first, 10, 1, t);
  EXPECT_EQ(second.suppressedAt(), kNever);
}

}  // namespace
}  // namespace braid::dcm_test
