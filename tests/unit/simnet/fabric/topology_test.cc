#include "simnet/fabric/topology.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "simnet/fabric/switched_network.h"

namespace braid::topology_test {
namespace {

using namespace sim;

TEST(Topology, AFatTreeHasTheNumbersOfAlFares) {
  for (size_t k : {4, 6, 8}) {
    Topology t = Pods::fatTree(k).build();
    EXPECT_EQ(t.hosts().size(), k * k * k / 4);
    EXPECT_EQ(t.nodes() - t.hosts().size(), k * k * 5 / 4);
    EXPECT_EQ(t.cables().size(), 2 * 3 * k * k * k / 4);
  }
  EXPECT_EQ(Pods::fatTree(8).build().nodes() - 128,
            80u);  // AMP section 5.2: 128 hosts, 80 switches
  EXPECT_THROW(Pods::fatTree(5), std::runtime_error);
}

TEST(Topology, FusosHas64HostsAndFourSpines) {
  Topology t = Pods::fuso().build();
  EXPECT_EQ(t.hosts().size(), 64u);
  EXPECT_EQ(t.nodes() - 64, 4u + 4 * (2 + 2));
}

TEST(Topology, TRacksHasNineLeavesAndFourSpines) {
  LeafSpine shape;
  shape.hostsPerLeaf = 20;
  Topology t = shape.build();
  EXPECT_EQ(t.hosts().size(), 180u);
  EXPECT_EQ(t.nodes(), 180u + 9 + 4);
}

// Paths have the right length, and hashing uses all equal ones equally.
TEST(SwitchedNetwork, FlowsAreSpreadOverAllShortestWays) {
  Simulation simulation(1);
  SwitchedNetwork network(simulation, Pods::fatTree(4).build(), 9);
  auto spread = [&](size_t from, size_t to) {
    std::map<std::vector<size_t>, int> ways;
    for (uint64_t flow = 0; flow < 4000; ++flow)
      ++ways[network.way(from, to, flow * 0x9e3779b97f4a7c15)];
    return ways;
  };
  auto rack = spread(0, 1), pod = spread(0, 2), core = spread(0, 15);
  EXPECT_EQ(rack.size(), 1u);
  EXPECT_EQ(rack.begin()->first.size(), 2u);
  ASSERT_EQ(pod.size(), 2u);
  ASSERT_EQ(core.size(), 4u);
  for (const auto& [way, flows] : pod) {
    EXPECT_EQ(way.size(), 4u);
    EXPECT_NEAR(flows, 2000, 200);
  }
  for (const auto& [way, flows] : core) {
    EXPECT_EQ(way.size(), 6u);
    EXPECT_NEAR(flows, 1000, 150);
  }
}

TEST(SwitchedNetwork, AWayIsFollowedFromCableToCable) {
  Simulation simulation(1);
  Topology t = Pods::fuso().build();
  SwitchedNetwork network(simulation, t, 4);
  for (uint64_t flow = 0; flow < 50; ++flow) {
    std::vector<size_t> way = network.way(3, 60, flow);
    EXPECT_EQ(t.cables()[way.front()].from, t.hosts()[3]);
    EXPECT_EQ(t.cables()[way.back()].to, t.hosts()[60]);
    for (size_t i = 1; i < way.size(); ++i)
      EXPECT_EQ(t.cables()[way[i - 1]].to, t.cables()[way[i]].from);
  }
}

TEST(SwitchedNetwork, APacketTakesItsTimeOverEachHop) {
  Simulation simulation(1);
  Pods shape = Pods::fatTree(4);
  PortOptions port;
  port.rate = 8e9;  // 1000 bytes: 1 us
  port.delay = 2us;
  shape.host = shape.access = shape.fabric = port;
  SwitchedNetwork network(simulation, shape.build(), 2);
  std::map<size_t, Duration> arrived;
  for (size_t h = 0; h < network.hosts(); ++h)
    network.attach(h, Lane::kGateway,
                   [&, h](Parcel&&) { arrived[h] = simulation.now() - Time{1s}; });
  auto send = [&](size_t from, uint32_t to) {
    Parcel p;
    p.host = to;
    p.bytes = 1000;
    network.send(from, std::move(p));
  };
  send(0, 1), send(4, 6), send(8, 15);
  simulation.run(1ms);
  EXPECT_EQ(arrived[1], 2 * 3us);
  EXPECT_EQ(arrived[6], 4 * 3us);
  EXPECT_EQ(arrived[15], 6 * 3us);  // hosts 8 to 11 are one pod, 12 to 15 the next
}

}  // namespace
}  // namespace braid::topology_test
