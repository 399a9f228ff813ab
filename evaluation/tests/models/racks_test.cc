// The parts of T-RACKs' simulation, and results that must hold for any parameters.

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/racks/rack_experiments.h"
#include "evaluation/racks/rack_tree.h"
#include "inet/ip.h"
#include "simnet/tcp/tcp_flow.h"

namespace braid::sim::racks_test {
namespace {

constexpr Duration kPacketTime = 12us;

Bytes packet(Ecn ecn) {
  IpFields fields{address("10.0.0.2"), address("10.0.0.1"), 6, ecn};
  Bytes content(1460);
  return tcpPacket(fields, {.sport = 1, .dport = 2, .payload = content});
}

Json run(const char* name, const RackParams& params) {
  for (const RackExperiment& e : rackExperiments()) {
    if (e.name == std::string_view(name)) return e.run(params);
  }
  throw std::invalid_argument(name);
}

TEST(PortQueue, DropsWhatFindsItFull) {
  PortQueue queue(Discipline::kDropTail, 100, kPacketTime, 1);
  for (int i = 0; i < 150; ++i) queue.push(packet(Ecn::kNotEct), Time{});
  EXPECT_EQ(queue.size(), 100u);
  EXPECT_EQ(queue.dropped(), 50u);
}

TEST(PortQueue, DropRandKeepsTheLimitAndDropsOthersToo) {
  PortQueue queue(Discipline::kDropRand, 100, kPacketTime, 1);
  for (int i = 0; i < 100; ++i) queue.push(packet(Ecn::kNotEct), Time{});
  for (int i = 0; i < 50; ++i) queue.push(packet(Ecn::kEct0), Time{});
  EXPECT_EQ(queue.size(), 100u);
  EXPECT_EQ(queue.dropped(), 50u);
  int late = 0;
  while (auto p = queue.pop(Time{})) late += readEcn(*p) == Ecn::kEct0;
  EXPECT_GT(late, 20);
  EXPECT_LT(late, 50);
}

TEST(PortQueue, DctcpMarksAboveTheThreshold) {
  PortQueue queue(Discipline::kDctcp, 100, kPacketTime, 1);
  for (int i = 0; i < 50; ++i) queue.push(packet(Ecn::kEct0), Time{});
  EXPECT_EQ(queue.marked(), 50 - PortQueue::kThreshold - 1);
  EXPECT_EQ(queue.dropped(), 0u);
}

TEST(PortQueue, RedMarksOrDropsByTheAverage) {
  for (Ecn ecn : {Ecn::kEct0, Ecn::kNotEct}) {
    PortQueue queue(Discipline::kRedEcn, 100, kPacketTime, 1);
    for (int i = 0; i < 50; ++i) queue.push(packet(ecn), Time{});
    EXPECT_EQ(queue.marked() + queue.dropped(), 0u) << "the average is still low";
    for (int i = 0; i < 2000; ++i) {
      if (queue.size() >= 50) (void)queue.pop(Time{});
      queue.push(packet(ecn), Time{});
    }
    EXPECT_GT(ecn == Ecn::kEct0 ? queue.marked() : queue.dropped(), 20u);
    EXPECT_EQ(ecn == Ecn::kEct0 ? queue.dropped() : queue.marked(), 0u);
  }
}

TEST(RackTree, OneFlowTakesItsRoundTripsAndNothingIsLost) {
  RackTree tree({.senders = 4}, 1);
  TcpFlow flow(tree, tree.sender(0), tree.receiver(), 1000, {.bytes = 14600});
  Time begin = tree.now();
  tree.run(100ms);
  ASSERT_TRUE(flow.done());
  EXPECT_EQ(flow.wrongBytes(), 0u);
  // Handshake, half a round trip, two transmissions of the first packet and nine more.
  EXPECT_GT(flow.finishedAt() - begin, 150us + 11 * kPacketTime);
  EXPECT_LT(flow.finishedAt() - begin, 160us + 11 * kPacketTime);
  EXPECT_EQ(flow.retransmits(), 0u);
}

TEST(RackTree, PacketsAreConserved) {
  RackTree tree({.senders = 20}, 1);
  std::vector<std::unique_ptr<TcpFlow>> flows;
  for (uint16_t i = 0; i < 20; ++i) {
    flows.push_back(std::make_unique<TcpFlow>(tree, tree.sender(i), tree.receiver(),
                                              uint16_t(1000 + i), TcpOptions{.bytes = 1 << 20}));
  }
  tree.run(50ms);
  const PortQueue& queue = tree.bottleneck();
  EXPECT_GT(queue.dropped(), 0u);
  uint64_t inTransmission = queue.in() - queue.dropped() - queue.size() - tree.carried();
  EXPECT_LE(inTransmission, 1u);
  tree.run(60s);
  EXPECT_EQ(queue.in(), queue.dropped() + tree.carried());
  for (const auto& flow : flows) {
    EXPECT_TRUE(flow->done());
    EXPECT_EQ(flow->wrongBytes(), 0u);
  }
}

TEST(Racks, TheSameSeedGivesTheSameResult) {
  RackParams params;
  params.rounds = 1;
  params.shim = "sender";
  EXPECT_EQ(run("incast", params), run("incast", params));
  Json first = run("incast", params);
  params.seed = 2;
  EXPECT_NE(first["hash"], run("incast", params)["hash"]);
}

// Four flows of ten packets fit into the queue.
TEST(Racks, WithoutLossTheShimSaysNothingAndChangesNothing) {
  RackParams params;
  params.flows = 4;
  Json off = run("incast", params);
  params.shim = "sender";
  Json on = run("incast", params);
  EXPECT_EQ(off["dropped"], 0);
  EXPECT_EQ(on["actuators"]["fired"], 0);
  EXPECT_EQ(on["actuators"]["acks"], 0);
  EXPECT_EQ(off["hash"], on["hash"]);
}

TEST(Racks, WithLossItReplacesTimeouts) {
  RackParams params;
  params.rounds = 1;
  Json off = run("incast", params);
  EXPECT_GT(off["timeouts"], 0);
  params.shim = "sender";
  Json on = run("incast", params);
  EXPECT_EQ(on["timeouts"], 0);
  EXPECT_GT(on["actuators"]["useful"], 0);
  EXPECT_LT(std::ranges::max(on["times"].get<std::vector<double>>()), 0.05);
  EXPECT_GT(std::ranges::max(off["times"].get<std::vector<double>>()), 0.2);
}

// Section III-B: the flows are the same for any TCP of the hosts. Losses are traced for both kinds
// of recovery.
TEST(Racks, TracedFlowsEndAndEachRecoveryIsSeen) {
  RackParams params;
  params.load = 0.9;
  params.seconds = 1;
  params.queue = 20;
  Json off = run("traced", params);
  EXPECT_EQ(off["incomplete"], 0);
  EXPECT_GT(off["dropped"], 0);
  EXPECT_EQ(off["probes"], 0);
  EXPECT_GT(off["fast"]["count"], 0);
  EXPECT_LE(off["timeout"]["count"],
            off["timeouts"]);  // a repeated timeout belongs to the same recovery
  params.recovery = "tlp";
  Json tlp = run("traced", params);
  EXPECT_GT(tlp["probes"], 0);
  EXPECT_EQ(tlp["flows"], off["flows"]);
  EXPECT_EQ(tlp["hash"], run("traced", params)["hash"]);
}

TEST(Racks, TheRoundTripIsWhatIsAskedFor) {
  RackParams params;
  params.flows = 4;
  params.rounds = 1;
  params.rtt = 20;
  for (double seconds : run("incast", params)["times"].get<std::vector<double>>()) {
    EXPECT_GE(seconds, 0.010);
    EXPECT_LT(seconds, 0.011);
  }
}

}  // namespace
}  // namespace braid::sim::racks_test
