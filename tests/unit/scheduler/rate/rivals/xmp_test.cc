#include "scheduler/rate/rivals/coupled.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::xmp_test {
namespace {

struct XmpTest : testing::Test {
  ControllerGroup group;
  Xmp first{kBytes, 10, &group}, second{kBytes, 10, &group};
  void SetUp() override {
    for (Xmp* c : {&first, &second}) {
      c->setUsable(true, at(0s));
      c->onMarks(1, at(1s), at(1100ms));
    }
  }
};

TEST_F(XmpTest, AMarkTakesOneQuarterOncePerWindow) {
  EXPECT_EQ(first.window(), 7500u);
  first.onMarks(1, at(1050ms), at(1150ms));
  EXPECT_EQ(first.window(), 7500u);
  first.onMarks(1, at(1100ms), at(1200ms));
  EXPECT_EQ(first.window(), 5625u);
}

TEST_F(XmpTest, DeltaOncePerWindow) {
  AckSample unused = ackOf(second, 10, at(1100ms));
  unused.inFlight = 0;
  second.onAck(unused);                         // only its RTT
  first.onAck(ackOf(first, 1000, at(1100ms)));  // at 1.2 s; delta = 1/2
  EXPECT_EQ(first.window(), 8000u);
  first.onAck(ackOf(first, 1000, at(1150ms)));
  EXPECT_EQ(first.window(), 8000u) << "the same window";
  first.onAck(ackOf(first, 1000, at(1200ms)));  // delta = 8000 / 15500
  EXPECT_EQ(first.window(), 8516u);
}

TEST_F(XmpTest, AloneItGrowsByOneDatagram) {
  second.setUsable(false, at(1s));
  first.onAck(ackOf(first, 1000, at(1100ms)));
  EXPECT_EQ(first.window(), 8500u);
}

TEST_F(XmpTest, ALossHalves) {
  first.onLoss(lossOf(1, at(1100ms), at(1200ms)));
  EXPECT_EQ(first.window(), 3750u);
}

TEST_F(XmpTest, MinimumWindow) {
  squeeze(first, at(2s));
  EXPECT_EQ(first.window(), 2000u);
}

}  // namespace
}  // namespace braid::xmp_test
