#include "tunnel/peer/restart_notice.h"

#include <gtest/gtest.h>

#include <map>

namespace braid::restart_notices_test {
namespace {

struct RestartNoticesTest : testing::Test {
  PacketPool pool{2048, 8};
  RestartNotices calls;
  Time now = Time{} + 1s;
  std::map<Route, std::vector<Time>> made;

  static Route routeOf(uint16_t peer, uint16_t way = 0) {
    return {1, {}, {*Address::parse("192.0.2.1"), static_cast<uint16_t>(1000 + 10 * peer + way)}};
  }
  static KnownInitiator callerOf(uint8_t peer, uint16_t ways = 1) {
    KnownInitiator caller;
    caller.pin = {peer};
    caller.call = {peer, {peer}};
    for (uint16_t way = 0; way < ways; ++way) caller.routes.push_back(routeOf(peer, way));
    return caller;
  }
  size_t poll() {
    size_t count = 0;
    for (Datagram d; calls.pollDatagram(pool, d, now); ++count) {
      made[d.route].push_back(now);
      EXPECT_EQ(d.bytes.size(), kRestartNoticeSize);
      EXPECT_TRUE(readRestartNotice(d.bytes.view()));
      EXPECT_LE(count, 1000u);
    }
    return count;
  }
  void run(Duration whole) {
    Time end = now + whole;
    while (calls.nextDeadline() <= end) {
      now = std::max(now, calls.nextDeadline());
      poll();
    }
    now = end;
  }
};

TEST_F(RestartNoticesTest, NobodyIsCalledWhoWasNotHere) {
  EXPECT_EQ(calls.nextDeadline(), kNever);
  calls.begin({}, now);
  EXPECT_EQ(calls.nextDeadline(), kNever);
  EXPECT_EQ(poll(), 0u);
}

TEST_F(RestartNoticesTest, EveryRouteIsCalledAtOnceAndThenEverLessAndThenNoMore) {
  Time began = now;
  calls.begin({callerOf(1, 2)}, now);
  EXPECT_EQ(poll(), 2u);
  EXPECT_EQ(calls.nextDeadline(), began + 100ms);
  run(1h);
  ASSERT_EQ(made.size(), 2u);
  std::vector<Time> expected;
  for (Duration at : {0ms, 100ms, 300ms, 700ms, 1500ms, 3100ms, 6300ms})
    expected.push_back(began + at);
  EXPECT_EQ(made[routeOf(1, 0)], expected);
  EXPECT_EQ(made[routeOf(1, 1)], expected);
  EXPECT_EQ(calls.nextDeadline(), kNever);
}

TEST_F(RestartNoticesTest, WhoHasComeIsCalledNoMore) {
  calls.begin({callerOf(1), callerOf(2)}, now);
  run(50ms);
  calls.end({1});
  run(1h);
  EXPECT_EQ(made[routeOf(1)].size(), 1u);
  EXPECT_EQ(made[routeOf(2)].size(), RestartNotices::kRounds);
}

TEST_F(RestartNoticesTest, ManyAreCalledOneAfterTheOther) {
  std::vector<KnownInitiator> callers;
  for (uint8_t peer = 0; peer < 200; ++peer) callers.push_back(callerOf(peer));
  calls.begin(callers, now);
  EXPECT_EQ(poll(), 1u);
  run(99ms);
  EXPECT_EQ(made.size(), 50u) << "at the pace at which handshakes may begin";
}

TEST_F(RestartNoticesTest, RoutesAreBounded) {
  calls.begin({callerOf(1, 100)}, now);
  EXPECT_EQ(poll(), KnownInitiator::kMostRoutes);
}

TEST_F(RestartNoticesTest, WithoutABufferACallIsLostAndNoMore) {
  calls.begin({callerOf(1)}, now);
  std::vector<Packet> taken;
  while (Packet p = pool.allocate()) taken.push_back(std::move(p));
  EXPECT_EQ(poll(), 0u);
  EXPECT_GT(calls.nextDeadline(), now) << "it does not spin";
  taken.clear();
  run(1h);
  EXPECT_EQ(made[routeOf(1)].size(), RestartNotices::kRounds - 1);
}

}  // namespace
}  // namespace braid::restart_notices_test
