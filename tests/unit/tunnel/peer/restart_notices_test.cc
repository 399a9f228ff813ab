#include "tunnel/peer/restart_notice.h"

#include <gtest/gtest.h>

#include <map>

namespace braid::restart_notices_test {
namespace {

struct RestartNoticesTest : testing::Test {
  PacketPool pool{2048, 8};
  RestartNotices notices;
  Time now = Time{} + 1s;
  std::map<Route, std::vector<Time>> made;

  static Route routeOf(uint16_t peer, uint16_t way = 0) {
    return {1, {}, {*Address::parse("192.0.2.1"), static_cast<uint16_t>(1000 + 10 * peer + way)}};
  }
  static KnownInitiator initiatorOf(uint8_t peer, uint16_t ways = 1) {
    KnownInitiator initiator;
    initiator.pin = {peer};
    initiator.notice = {peer, {peer}};
    for (uint16_t way = 0; way < ways; ++way) initiator.routes.push_back(routeOf(peer, way));
    return initiator;
  }
  size_t poll() {
    size_t count = 0;
    for (Datagram d; notices.pollDatagram(pool, d, now); ++count) {
      made[d.route].push_back(now);
      EXPECT_EQ(d.bytes.size(), kRestartNoticeSize);
      EXPECT_TRUE(readRestartNotice(d.bytes.view()));
      EXPECT_LE(count, 1000u);
    }
    return count;
  }
  void run(Duration whole) {
    Time end = now + whole;
    while (notices.nextDeadline() <= end) {
      now = std::max(now, notices.nextDeadline());
      poll();
    }
    now = end;
  }
};

TEST_F(RestartNoticesTest, NobodyIsCalledWhoWasNotHere) {
  EXPECT_EQ(notices.nextDeadline(), kNever);
  notices.begin({}, now);
  EXPECT_EQ(notices.nextDeadline(), kNever);
  EXPECT_EQ(poll(), 0u);
}

TEST_F(RestartNoticesTest, EveryRouteIsCalledAtOnceAndThenEverLessAndThenNoMore) {
  Time began = now;
  notices.begin({initiatorOf(1, 2)}, now);
  EXPECT_EQ(poll(), 2u);
  EXPECT_EQ(notices.nextDeadline(), began + 100ms);
  run(1h);
  ASSERT_EQ(made.size(), 2u);
  std::vector<Time> expected;
  for (Duration at : {0ms, 100ms, 300ms, 700ms, 1500ms, 3100ms, 6300ms})
    expected.push_back(began + at);
  EXPECT_EQ(made[routeOf(1, 0)], expected);
  EXPECT_EQ(made[routeOf(1, 1)], expected);
  EXPECT_EQ(notices.nextDeadline(), kNever);
}

TEST_F(RestartNoticesTest, WhoHasComeIsCalledNoMore) {
  notices.begin({initiatorOf(1), initiatorOf(2)}, now);
  run(50ms);
  notices.end({1});
  run(1h);
  EXPECT_EQ(made[routeOf(1)].size(), 1u);
  EXPECT_EQ(made[routeOf(2)].size(), RestartNotices::kRounds);
}

TEST_F(RestartNoticesTest, ManyAreCalledOneAfterTheOther) {
  std::vector<KnownInitiator> initiators;
  for (uint8_t peer = 0; peer < 200; ++peer) initiators.push_back(initiatorOf(peer));
  notices.begin(initiators, now);
  EXPECT_EQ(poll(), 1u);
  run(99ms);
  EXPECT_EQ(made.size(), 50u) << "at the pace at which handshakes may begin";
}

TEST_F(RestartNoticesTest, RoutesAreBounded) {
  notices.begin({initiatorOf(1, 100)}, now);
  EXPECT_EQ(poll(), KnownInitiator::kMostRoutes);
}

TEST_F(RestartNoticesTest, WithoutABufferACallIsLostAndNoMore) {
  notices.begin({initiatorOf(1)}, now);
  std::vector<Packet> taken;
  while (Packet p = pool.allocate()) taken.push_back(std::move(p));
  EXPECT_EQ(poll(), 0u);
  EXPECT_GT(notices.nextDeadline(), now) << "it does not spin";
  taken.clear();
  run(1h);
  EXPECT_EQ(made[routeOf(1)].size(), RestartNotices::kRounds - 1);
}

}  // namespace
}  // namespace braid::restart_notices_test
