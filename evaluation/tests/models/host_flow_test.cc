#include "evaluation/models/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "simnet/fabric/gateways.h"

namespace braid::host_flow_test {
namespace {

using namespace sim;

constexpr size_t kHosts = 8;
constexpr double kRate = 1e9;
constexpr uint64_t kMost = 1'000'000;

std::vector<HostFlow> draw(uint64_t seed, Duration until) {
  Sizes sizes = namedSizes("web_search");
  Random random(seed);
  return flowsOfRandomPairs(random, sizes,
                            {kHosts, gapOf(sizes, kMost, 0.4, kHosts, kRate), until, kMost});
}

TEST(RandomPairs, OfferTheLoadThatIsAsked) {
  double bytes = 0;
  for (const HostFlow& f : draw(1, 20s)) bytes += static_cast<double>(f.bytes);
  EXPECT_NEAR(bytes * 8 / (20 * kHosts * kRate), 0.4, 0.02);
}

TEST(RandomPairs, AreOfTwoHostsEachAndComeInOrder) {
  std::vector<HostFlow> flows = draw(2, 2s);
  std::set<std::pair<size_t, size_t>> pairs;
  for (const HostFlow& f : flows) {
    EXPECT_NE(f.client, f.server);
    EXPECT_LE(f.bytes, kMost);
    EXPECT_LT(f.begin, Time{} + 2s);
    EXPECT_EQ(f.end, kNever);
    pairs.emplace(f.client, f.server);
  }
  EXPECT_EQ(pairs.size(), kHosts * (kHosts - 1));
  EXPECT_TRUE(std::ranges::is_sorted(flows, {}, &HostFlow::begin));
}

// A pair that two flows name, in both directions, is one pair of tunnels.
TEST(FabricGateways, StartsEachPairOnce) {
  PortOptions port;
  Topology topology;
  size_t middle = topology.addSwitch();
  for (int i = 0; i < 3; ++i) topology.addHost(middle, port, port);
  World world(1);
  SwitchedNetwork network(world, topology, 1);
  FabricGateways gateways(world, network, 2);
  for (int i = 0; i < 3; ++i) gateways.add({});
  gateways.start({{1, 0}, {0, 1}, {2, 1}, {1, 0}});
  EXPECT_EQ(gateways.at(0).status().peers.size(), 1u);
  EXPECT_EQ(gateways.at(1).status().peers.size(), 2u);
  EXPECT_EQ(gateways.at(2).status().peers.size(), 1u);
}

}  // namespace
}  // namespace braid::host_flow_test
