// The clock of a gateway jumps forward by an hour: the host was suspended with a running clock, or
// the process was stopped. All timers of that hour are then due at once.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::clock_test {
namespace {

enum class Who { kEdge, kHub, kBoth };

class ClockJump : public testing::TestWithParam<Who> {
 protected:
  static void jump(Scenario& s, Duration by) {
    if (GetParam() != Who::kHub) s.edge.jumpClock(by);
    if (GetParam() != Who::kEdge) s.hub.jumpClock(by);
  }
};
INSTANTIATE_TEST_SUITE_P(Of, ClockJump, testing::Values(Who::kEdge, Who::kHub, Who::kBoth));

TEST_P(ClockJump, ADownloadGoesOnAfterAnHourInOneStep) {
  Scenario s(5);
  s.path("dsl", kDsl).path("lte", kLte).start();
  TcpFlow& file = s.download(12_MB);
  UdpFlow& call = s.call({.interval = 20ms, .count = 900}, true);
  s.run(1s);
  ASSERT_FALSE(file.done());
  jump(s, 1h);
  ASSERT_TRUE(s.finish(file, 60s));
  s.run(20s);
  EXPECT_EQ(call.wrong() + call.duplicates(), 0u);
  EXPECT_TRUE(s.isUp()) << s.report();
  Ping& ping = s.ping(50ms, 20);
  s.run(3s);
  EXPECT_GE(ping.answered(), 19u) << s.report();
}

TEST_P(ClockJump, AnIdleSessionIsThereAfterAnHourInOneStep) {
  Scenario s(6);
  s.path("dsl", kDsl).path("lte", kLte).start().run(5s);
  jump(s, 1h);
  // When only the hub's clock jumps, the hub has ended the session. The edge finds out by its next
  // PING.
  s.run(GetParam() == Who::kHub ? 15s : 5s);
  EXPECT_TRUE(s.isUp()) << s.report();
  Ping& ping = s.ping(50ms, 20);
  s.run(3s);
  EXPECT_GE(ping.answered(), 19u) << s.report();
}

// Keys change every minute, and the clock jumps over several changes.
TEST_P(ClockJump, KeysThatAreOverdueAreRenewedOnce) {
  TunnelOptions options;
  options.rekeyAfter = 60s;
  Scenario s(8, options);
  s.path("dsl", kDsl).start().run(2s);
  jump(s, 1h);
  TcpFlow& file = s.download(2_MB);
  ASSERT_TRUE(s.finish(file, 30s));
  s.run(10s);
  EXPECT_TRUE(s.isUp());
  EXPECT_LE(s.edge.countEvents(Event::Kind::kRekeyed), 3u) << s.report();
}

}  // namespace
}  // namespace braid::sim::clock_test
