#include "scheduler/rate/auto_controller.h"

#include <gtest/gtest.h>

#include "scheduler/rate/controller_group.h"
#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::auto_controller_test {
namespace {

struct AutoControllerTest : testing::Test {
  ControllerGroup group;
  AutoController a{{.datagram = kBytes}, &group};
  Time now = at(1s);
  AutoControllerTest() { a.setUsable(true, now); }
  void ack(Duration rtt) {
    now += rtt;
    a.onAck(ackOf(a, kBytes, now - rtt, rtt));
  }
  void mark() { a.onMarks(1, now, now); }
  std::string choice() const { return a.choice(); }
};

TEST_F(AutoControllerTest, BeginsAsWan) {
  EXPECT_EQ(choice(), "wan");
  EXPECT_EQ(a.window(), 10 * kBytes);
}

TEST_F(AutoControllerTest, MarksOverAShortRoundTripAreAFabric) {
  ack(2ms);
  mark();
  EXPECT_EQ(choice(), "amp");
}

TEST_F(AutoControllerTest, MarksOverALongerOneAreNot) {
  ack(2100us);
  mark();
  EXPECT_EQ(choice(), "wan");
}

TEST_F(AutoControllerTest, AShortRoundTripWithoutMarksIsNot) {
  for (int i = 0; i < 1000; ++i) ack(100us);
  EXPECT_EQ(choice(), "wan");
}

TEST_F(AutoControllerTest, MarksBeforeAnyRttAreNot) {
  mark();
  EXPECT_EQ(choice(), "wan");
}

TEST_F(AutoControllerTest, TheWindowGoesOn) {
  ack(1ms);
  uint64_t window = a.window();
  mark();  // AMP: a quarter less
  EXPECT_EQ(a.window(), window - window / 4);
}

TEST_F(AutoControllerTest, LongerRoundTripsEndIt) {
  ack(1ms);
  mark();
  ack(3900us);
  EXPECT_EQ(choice(), "amp");
  ack(4ms);
  EXPECT_EQ(choice(), "wan");
}

TEST_F(AutoControllerTest, LossOfANetworkThatDoesNotMarkEndsIt) {
  ack(1ms);
  mark();
  Time marked = now;
  a.onLoss(lossOf(1, now, marked + 1s));
  EXPECT_EQ(choice(), "amp");
  a.onLoss(lossOf(1, now, marked + 1001ms));
  EXPECT_EQ(choice(), "wan");
}

TEST_F(AutoControllerTest, AnotherPathBeginsAnew) {
  ack(1ms);
  mark();
  a.reset(now);
  EXPECT_EQ(choice(), "wan");
  EXPECT_EQ(a.window(), 10 * kBytes);
  mark();
  EXPECT_EQ(choice(), "wan");  // the RTT belonged to the old path
}

TEST_F(AutoControllerTest, OnlyThoseThatChoseAmpAreCoupled) {
  AutoController other{{.datagram = kBytes}, &group};
  other.setUsable(true, now);
  ack(1ms);
  mark();
  EXPECT_EQ(group.totalWindow(), static_cast<double>(a.window()));
}

TEST_F(AutoControllerTest, ASwitchKeepsWhetherItIsInUse) {
  a.setUsable(false, now);
  ack(1ms);
  mark();
  EXPECT_EQ(group.totalWindow(), 0);
}

}  // namespace
}  // namespace braid::auto_controller_test
