#include "scheduler/rate/wan.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::coupled_wan_test {
namespace {

/// Two subflows of one group. shared_bottleneck_test.cc tests that sharing() finds those with one
/// bottleneck.
struct CoupledWanTest : testing::Test {
  ControllerGroup group;
  CoupledWan a{kBytes, 10, &group};
  CoupledWan b{kBytes, 10, &group};
  CoupledWanTest() {
    a.setUsable(true, at(0s));
    b.setUsable(true, at(0s));
  }
  static void ack(CoupledWan& c, Time now) { c.onAck(ackOf(c, kBytes, now - 40ms, 40ms)); }
};

TEST_F(CoupledWanTest, ItsWindowIsNotCountedForCoupledOnes) {
  EXPECT_EQ(group.totalWindow(), 0);
  EXPECT_FALSE(group.suppressing());
}

TEST_F(CoupledWanTest, IsNotSuppressed) {
  ControllerGroup::Member amp;
  group.join(amp);
  amp.atMinimum = true;
  group.setUsable(amp, true, at(0s));
  for (int i = 0; i < 10; ++i) group.onRound(true, 2, 8, at(1s));
  EXPECT_FALSE(group.suppressing());
  EXPECT_EQ(a.suppressedAt(), kNever);
  group.leave(amp);
}

// A mark on a path with a long round trip ends the start phase of `wan`.
TEST_F(CoupledWanTest, WhatWanSendsAtOnceIsAlsoThatOfAuto) {
  std::unique_ptr<Controller> c = makeController("auto", {.datagram = kBytes}, &group);
  uint64_t delivered = 0;
  for (Time now = at(1s); now < at(2s); now += 100ms) {
    AckSample ack = ackOf(*c, 10 * kBytes, now - 100ms);
    ack.priorDelivered = delivered;
    ack.delivered = delivered += 10 * kBytes;
    c->onMarks(1, now - 100ms, now);
    c->onAck(ack);
  }
  c->onSent(kBytes, kBytes, at(3s));
  EXPECT_EQ(c->burst(), 10 * kBytes);
}

TEST_F(CoupledWanTest, LeavesItsGroup) {
  auto c = std::make_unique<CoupledWan>(kBytes, 10, &group);
  c->setUsable(true, at(0s));
  c.reset();
  ack(a, at(1s));  // would access the removed subflow
}

TEST_F(CoupledWanTest, WithoutAGroupItIsAlone) {
  CoupledWan c(kBytes, 10, nullptr);
  c.setUsable(true, at(0s));
  ack(c, at(1s));
  c.onLoss(lossOf(1, at(1s), at(1s)));
  c.reset(at(2s));
  EXPECT_EQ(c.window(), 10 * kBytes);
}

}  // namespace
}  // namespace braid::coupled_wan_test
