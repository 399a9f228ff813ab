// Paths with a long round trip: satellites (600 ms), and radio links behind a queue of seconds.

#include <gtest/gtest.h>

#include "tests/sim/recovery_lab.h"
#include "tests/sim/scenario.h"

namespace braid::sim::slow_test {
namespace {

const LinkOptions kSatellite{.rateBitsPerSecond = 50_Mbit, .delay = 300ms};
/// Two seconds each way.
const LinkOptions kFullQueue{.rateBitsPerSecond = 20_Mbit, .delay = 2s};

class Slow : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Slow, testing::Values(1, 2, 3, 4));

Duration timeToComeUp(Scenario& s, Duration limit) {
  s.world.start();
  bool up = s.world.runUntil([&] { return s.isUp(); }, limit);
  EXPECT_TRUE(up) << s.report();
  return s.world.now() - Time{};
}

// Three round trips for the handshake, one for the first path; the responder is half of one behind.
TEST_P(Slow, ASessionComesUpOverASatellite) {
  Scenario s(GetParam());
  s.path("satellite", kSatellite);
  EXPECT_LE(timeToComeUp(s, 10s), 3500ms);
}

TEST_P(Slow, ASessionComesUpBehindAQueueOfFourSeconds) {
  for (double loss : {0.0, 0.05}) {
    Scenario s(GetParam());
    LinkOptions link = kFullQueue;
    link.loss = loss;
    s.path("lte", link);
    EXPECT_LE(timeToComeUp(s, 90s), loss > 0 ? 60s : 24s);
    EXPECT_EQ(s.edge.countEvents(Event::Kind::kHandshakeFailed), 0u) << loss;
    UdpFlow& call = s.call({.count = 50});  // fits into the initial window
    s.run(15s);
    EXPECT_GE(call.received(), loss > 0 ? 40u : 50u) << s.report();
  }
}

// Beside a path that is fast, the slow one is used, too.
TEST_P(Slow, ASlowUplinkJoinsAFastOne) {
  Scenario s(GetParam());
  s.path("dsl", kDsl).path("lte", kFullQueue).start();
  EXPECT_TRUE(s.isUsed("lte", 15s)) << s.report();
}

// The queue fills up while the session lives: no new session is needed.
TEST_P(Slow, ASessionOutlivesAQueueThatFills) {
  Scenario s(GetParam());
  s.path("lte", kLte).start().run(5s);
  s.call({.count = 3000});
  for (Duration delay = 130ms; delay <= 2s; delay += 100ms) {
    s.change("lte", [&](LinkOptions& o) { o.delay = delay; });
    s.run(500ms);
  }
  s.run(20s);
  EXPECT_TRUE(s.isUp());
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 0u) << s.report();
  EXPECT_EQ(s.hub.countEvents(Event::Kind::kPeerDown), 0u) << s.report();
}

// The path counts as silent some six seconds after the last answer left the peer. What is sent then
// is answered four seconds later, which is longer than a packet is repaired on a fast path.
TEST_P(Slow, APathThatWasSilentForAMomentIsWaitedForAsLongAsAnAnswerTakes) {
  TunnelOptions options;
  options.streams.on = true;
  Scenario s(GetParam(), options);
  s.path("lte", kFullQueue).start(40s);
  size_t read = 0, resets = 0;
  s.hub.onStream = [&](const StreamEvent& e) {
    resets += e.reset.has_value();
    std::vector<uint8_t> bytes(65536);
    while (size_t n = s.hub.streams().read(e.stream, bytes, s.hub.clock())) read += n;
  };
  s.edge.onStream = [&](const StreamEvent& e) { resets += e.reset.has_value(); };
  s.run(10s).call({.count = 6000});
  StreamHandle stream =
      s.edge.streams().open({{s.edge.host(), 5000}, {s.hub.host(), 80}}, s.edge.clock());
  ASSERT_TRUE(stream);
  const std::vector<uint8_t> half(1000, 7);
  s.edge.streams().write(stream, half, s.edge.clock());
  s.run(60s);
  EXPECT_EQ(read, half.size());
  auto given = [&] { return s.edge.drops(Drop::kPeerDown) + s.hub.drops(Drop::kPeerDown); };
  const uint64_t before = given();
  s.cut("lte").run(5600ms + GetParam() * 10ms);
  s.edge.streams().write(stream, half, s.edge.clock());
  s.mend("lte").run(40s);
  EXPECT_EQ(resets, 0u) << s.report();
  EXPECT_EQ(read, 2 * half.size()) << "the stream goes on";
  EXPECT_EQ(given(), before) << "no packet is given up while the peer counts as up";
  EXPECT_GE(s.edge.countEvents(Event::Kind::kSubflowSuspect), 1u) << s.report();
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 0u) << s.report();
  EXPECT_TRUE(s.isUp());
}

/// The order in which the segments of a burst arrive, the third of which is lost once.
std::vector<uint32_t> orderOf(const LinkOptions& link, Duration limit) {
  Lab lab(with("none"), link, link);
  lab.s.run(20s);
  lab.mark();
  lab.lost = {{"a", 3}, {"b", 3}};
  lab.burst(2000, 40);
  EXPECT_TRUE(lab.s.world.runUntil([&] { return lab.arrived[2000].size() == 40; }, limit));
  std::vector<std::pair<Time, uint32_t>> seen;
  for (const auto& [number, times] : lab.arrived[2000]) seen.emplace_back(times.front(), number);
  std::stable_sort(seen.begin(), seen.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint32_t> order;
  for (const auto& [time, number] : seen) order.push_back(number);
  return order;
}

TEST(SlowOrder, ALossIsWaitedForUntilItsRepairCanBeThere) {
  std::vector<uint32_t> inOrder(40);
  for (uint32_t i = 0; i < 40; ++i) inOrder[i] = i + 1;
  EXPECT_EQ(orderOf({.rateBitsPerSecond = 50_Mbit, .delay = 300ms}, 5s), inOrder);
  EXPECT_EQ(orderOf({.rateBitsPerSecond = 50_Mbit, .delay = 2s}, 30s), inOrder);
}

}  // namespace
}  // namespace braid::sim::slow_test
