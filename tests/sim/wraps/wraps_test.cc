// Numbers near 2^16, 2^32 and 2^62, under loss and reordering. No session lives long enough to
// reach them. So this test sets them at both ends while nothing is in flight. Only this test is
// compiled without access control, so the core needs no test hooks.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"
#include "tunnel/session/session.h"
#include "tunnel/tunnel_parts.h"

namespace braid::sim::wraps_test {
namespace {

const LinkOptions kRough{
    .rateBitsPerSecond = 20e6, .delay = 10ms, .loss = 0.02, .reorder = 0.05, .reorderDelay = 8ms};
const LinkOptions kRougher{
    .rateBitsPerSecond = 10e6, .delay = 25ms, .loss = 0.02, .reorder = 0.05, .reorderDelay = 20ms};

Session& sessionOf(Node& node) {
  return *node.tunnel().parts_->peers_.peers_.front().peer->session_;
}

bool isQuiet(Node& node) {
  Session& session = sessionOf(node);
  for (const Subflow* f : session.paths_.subflows_.order_) {
    const SentPackets& sent = f->sender_.inFlightTracker_.sent_;
    for (PacketNumber pn = sent.first(); pn < sent.next(); ++pn) {
      if (sent.at(pn).state == SentPacket::State::kInFlight) return false;
    }
  }
  for (const Flow& flow : session.queues_.flows.table_) {
    if (flow.sent.unacked() > 0) return false;
  }
  return session.inbound_.packets_.heldPackets() == 0;
}

// Makes all numbers that `from` assigns continue at these, as if `to` had seen all earlier ones.
void jump(Node& from, Node& to, PacketNumber packets, Dsn ordered, Dsn timely) {
  for (Subflow* f : sessionOf(from).paths_.subflows_.order_) {
    SubflowSender& sender = f->sender_;
    sender.inFlightTracker_.sent_.first_ = sender.inFlightTracker_.sent_.next_ = packets;
    sender.skipped_.due_ = packets + 300;
  }
  for (Flow& flow : sessionOf(from).queues_.flows.table_)
    flow.sent.nextDsn_ = {ordered, ordered, timely};
  for (Subflow* f : sessionOf(to).paths_.subflows_.order_) {
    SubflowReceiver& receiver = f->receiver_;
    receiver.replay_.commit(packets - 1);
    receiver.acks_.expected_ = packets;
  }
  PacketReceiver& packetsOf = sessionOf(to).inbound_.packets_;
  for (auto& page : packetsOf.order_.table_) {
    if (!page) continue;
    for (auto& entry : *page) {
      if (entry.slot) entry.slot->history.advance(ordered);
    }
  }
  for (auto& page : packetsOf.timely_) {
    if (!page) continue;
    for (DuplicateFilter& filter : page->filters) filter.history_.advance(timely);
  }
}

struct Boundary {
  const char* name;
  uint64_t at;      // not to be reached when it is the last number that there is
  uint64_t before;  // distance from the wrap at which the numbers continue
};

class Wraps : public testing::TestWithParam<Boundary> {};
INSTANTIATE_TEST_SUITE_P(At, Wraps,
                         testing::Values(Boundary{"2^16", uint64_t{1} << 16, 500},
                                         Boundary{"2^32", uint64_t{1} << 32, 500},
                                         Boundary{"2^62", uint64_t{1} << 62, 100'000}),
                         [](const auto& test) {
                           return "PowerOf" + std::string(test.param.name).substr(2);
                         });

TEST_P(Wraps, DownloadAndCallGoOn) {
  const Boundary& boundary = GetParam();
  TunnelOptions options;
  options.recovery = "cofuso";
  Scenario s(7, options);
  s.path("dsl", kRough).path("lte", kRougher).start();
  for (Node* node : {&s.edge, &s.hub})
    sessionOf(*node).proactiveRecovery_.blocks_.nextId_ = BlockId(0xffff - 10);
  TcpFlow& file = s.download(300_KB);
  UdpFlow& call = s.call({.interval = 150ms, .count = 200}, true);
  ASSERT_TRUE(s.finish(file, 20s));
  ASSERT_TRUE(s.world.runUntil([&] { return isQuiet(s.edge) && isQuiet(s.hub); }, 20s))
      << s.report();

  const uint64_t first = boundary.at - boundary.before;
  const uint64_t timely = boundary.before > 1000 ? first : boundary.at - 20;
  jump(s.hub, s.edge, PacketNumber(first), Dsn(first), Dsn(timely));
  jump(s.edge, s.hub, PacketNumber(first), Dsn(first), Dsn(timely));
  uint64_t heard = call.received();
  file.write(4_MB);
  ASSERT_TRUE(s.finish(file, 30s));
  s.run(8s);

  EXPECT_EQ(call.wrong() + call.duplicates(), 0u);
  EXPECT_GT(call.received(), heard + 40) << s.report();
  for (Node* node : {&s.edge, &s.hub}) {
    EXPECT_EQ(node->drops(Drop::kReplay), 0u) << node->name();
    EXPECT_EQ(node->drops(Drop::kBadSeal), 0u) << node->name();
    EXPECT_EQ(node->countEvents(Event::Kind::kPeerDown), 0u) << node->name();
  }
  uint64_t farthest = 0;
  for (const Subflow* f : sessionOf(s.hub).paths_.subflows_.order_)
    farthest = std::max(farthest, f->sender_.inFlightTracker_.sent_.next().value());
  EXPECT_GT(farthest, first + 1000);
  if (boundary.before < 1000) {
    EXPECT_GT(farthest, boundary.at);
  }
  // The blocks' numbers have passed 2^16 meanwhile.
  EXPECT_LT(sessionOf(s.hub).proactiveRecovery_.blocks_.nextId_.value(), 0x8000u);
}

}  // namespace
}  // namespace braid::sim::wraps_test
