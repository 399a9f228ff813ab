// The positions of losses in the window, for connections with known lost segments.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "evaluation/racks/loss_trace.h"
#include "simnet/tcp/connection.h"
#include "simnet/tcp/rivals.h"
#include "simnet/wired_pair.h"

namespace braid::sim::loss_trace_test {
namespace {

constexpr uint32_t kMss = 1448;
constexpr LinkOptions kLink{.rateBitsPerSecond = 1e9, .delay = 1ms};

/// The recoveries of a flow of ten segments (one initial window), of which these are lost in their
/// first transmission.
std::vector<TracedRecovery> recoveriesOf(std::set<int> lost, const std::string& recovery = "tcp") {
  WiredPair net(kLink, kLink, 1);
  int number = 0;
  net.left().onSend = [&](ByteView, const InnerPacket& ip) {
    return ip.payloadLength == 0 || !lost.contains(number++);
  };
  tcp::Options options = tcp::recoveryOptions(recovery);
  options.minProbe = 10ms;
  tcp::Connection connection(net, net.left(), net.right(), {1, 1}, options);
  LossTrace trace(connection.client());
  connection.client().send(10 * kMss);
  net.run(5s);
  EXPECT_EQ(connection.client().pending(), 0u);
  return trace.recoveries();
}

TEST(LossTrace, WithoutLossThereIsNothing) {
  EXPECT_TRUE(recoveriesOf({}).empty());
}

TEST(LossTrace, AHoleInTheWindowIsRepairedAtOnce) {
  auto found = recoveriesOf({2});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].timeout);
  EXPECT_DOUBLE_EQ(found[0].position, 0.2);
  EXPECT_DOUBLE_EQ(found[0].size, 0);
  EXPECT_DOUBLE_EQ(found[0].window, 10);
}

TEST(LossTrace, TwoHolesAreOneRecovery) {
  auto found = recoveriesOf({1, 5});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].timeout);
  EXPECT_DOUBLE_EQ(found[0].position, 0.1);
  EXPECT_DOUBLE_EQ(found[0].size, 0.4);
}

TEST(LossTrace, ALostTailTakesTheTimer) {
  auto found = recoveriesOf({6, 7, 8, 9});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].timeout);
  EXPECT_DOUBLE_EQ(found[0].position, 0.6);
  EXPECT_DOUBLE_EQ(found[0].size, 0.3);
  EXPECT_DOUBLE_EQ(found[0].window, 10);
}

TEST(LossTrace, ARetransmissionThatIsLostTooTakesTheTimerInARecoveryOfItsOwn) {
  auto found = recoveriesOf({2, 10});  // the eleventh transmission repairs the third segment
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found[0].timeout);
  EXPECT_TRUE(found[1].timeout);
  EXPECT_DOUBLE_EQ(found[1].position, 0.2);
}

TEST(LossTrace, AProbeIsNoRecovery) {
  EXPECT_TRUE(recoveriesOf({9}, "tlp").empty());
  auto timer = recoveriesOf({9});
  ASSERT_EQ(timer.size(), 1u);
  EXPECT_TRUE(timer[0].timeout);
  EXPECT_DOUBLE_EQ(timer[0].position, 0.9);
}

TEST(LossTrace, SharesAreOfTheirOwnKind) {
  std::vector<TracedRecovery> recoveries = {
      {true, 0.9, 0, 4}, {true, 0.3, 0.9, 2}, {false, 0, 1, 20}, {true, 0, 0.95, 3}};
  Json slow = recoveriesJson(recoveries, true), fast = recoveriesJson(recoveries, false);
  EXPECT_EQ(slow["count"], 3);
  EXPECT_DOUBLE_EQ(slow["large"], 1.0 / 3);
  EXPECT_DOUBLE_EQ(slow["tail"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(slow["sizes"][9], 1.0 / 3);
  EXPECT_DOUBLE_EQ(slow["window_mean"], 3);
  EXPECT_DOUBLE_EQ(slow["window_p50"], 3);
  EXPECT_DOUBLE_EQ(fast["positions"][9], 1);
  EXPECT_DOUBLE_EQ(fast["large"], 0);
  EXPECT_EQ(recoveriesJson({}, true)["count"], 0);
}

}  // namespace
}  // namespace braid::sim::loss_trace_test
