#include "ackshim/flow_table.h"

#include <gtest/gtest.h>

namespace braid::tracked_flows_test {
namespace {

constexpr Duration kIdle = 10s;

struct TrackedFlowsTest : testing::Test {
  AckShimOptions options;
  TrackedFlows flows{options, 2000, 9};

  static Time at(Duration d) { return Time{} + d; }
  /// Adds a proven flow at the current time, which is checked when idle.
  uint32_t add() {
    FlowKey key{Address::Family::kV4, 6, ++port_, 2, {}, {}};
    uint64_t hash = flows.table().hash(key);
    uint32_t i = flows.table().prove(flows.table().addHalfOpen(key, hash), hash);
    flows[i].lastUse = flows.stamp();
    flows.arm(i, kIdle);
    return i;
  }
  /// The times at which timers fired until `end`. Each asks to be called again after `again`.
  std::vector<Duration> firings(Duration end, Duration again = kIdle) {
    std::vector<Duration> times;
    while (flows.nextDeadline() <= at(end)) {
      flows.advanceTo(flows.nextDeadline());
      flows.onTimer(kIdle, [&](ShimFlow& flow) {
        times.push_back(flows.stamp() - Timestamp32{});
        flow.lastUse = flows.stamp();
        return again;
      });
    }
    return times;
  }

 private:
  uint16_t port_ = 0;
};

TEST_F(TrackedFlowsTest, TimeDoesNotGoBack) {
  flows.advanceTo(at(2s));
  flows.advanceTo(at(1s));
  EXPECT_EQ(flows.now(), at(2s));
  EXPECT_EQ(flows.stamp() - Timestamp32{}, 2s);
}

TEST_F(TrackedFlowsTest, ATimerIsOnlyMovedAhead) {
  uint32_t i = add();
  flows.armEarlier(i, 2s);
  flows.armEarlier(i, 1s);
  flows.armEarlier(i, 3s);
  std::vector<Duration> times = firings(4s);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_GE(times[0], 1s);
  EXPECT_LE(times[0], 1s + TimerWheel::kDefaultTick);
}

TEST_F(TrackedFlowsTest, ATimerThatFiredIsSetForWhatIsDueNext) {
  flows.armEarlier(add(), 1s);
  EXPECT_EQ(firings(4900ms, 1s).size(), 4u);
}

TEST_F(TrackedFlowsTest, AnIdleFlowIsForgottenWithAllThatItHas) {
  uint32_t i = add();
  std::vector<uint8_t> bytes(100);
  flows.cache().append(flows[i].inTail, bytes, {{0}, {100}}, flows.stamp());
  flows.cache().append(flows[i].outTail, bytes, {{0}, {100}}, flows.stamp());
  EXPECT_TRUE(firings(11s).empty());
  EXPECT_EQ(flows.table().size(), 0u);
  EXPECT_EQ(flows.cache().size(), 0u);
  EXPECT_EQ(flows.nextDeadline(), kNever);
}

TEST_F(TrackedFlowsTest, AFlowInUseIsNotIdle) {
  uint32_t i = add();
  flows.advanceTo(at(5s));
  flows[i].lastUse = flows.stamp();
  EXPECT_EQ(firings(11s).size(), 1u);  // the time at which it would have been idle
  EXPECT_EQ(flows.table().size(), 1u);
}

}  // namespace
}  // namespace braid::tracked_flows_test
