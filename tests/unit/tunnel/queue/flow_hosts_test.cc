#include "tunnel/queue/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "base/random.h"

namespace braid::flow_hosts_test {
namespace {

FlowKey key(uint8_t source, uint8_t destination) {
  FlowKey k;
  k.family = Address::Family::kV4;
  k.src[0] = source;
  k.dst[0] = destination;
  return k;
}

TEST(HostTable, AFlowCountsForBothEnds) {
  std::deque<Flow> flows;
  HostTable hosts(1);
  EXPECT_EQ(hosts.heaviest(), nullptr);
  EXPECT_EQ(hosts.heavier(key(1, 2)), nullptr);
  for (uint16_t n = 0; n < 4; ++n) hosts.add(flows.emplace_back(n), key(1, n < 3 ? 2 : 3));
  FlowHost* source = hosts.heaviest();
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->flows(), 4u);
  EXPECT_EQ(hosts.heavier(key(1, 2)), source);
  ASSERT_NE(hosts.heavier(key(9, 2)), nullptr);
  EXPECT_EQ(hosts.heavier(key(9, 2))->flows(), 3u);
  EXPECT_EQ(hosts.heavier(key(2, 1)), nullptr) << "an address at the other end is another host";
  hosts.remove(flows[3]);
  EXPECT_EQ(hosts.heavier(key(9, 3)), nullptr);
  for (uint16_t n = 0; n < 3; ++n) hosts.remove(flows[n]);
  EXPECT_EQ(hosts.heaviest(), nullptr);
}

TEST(HostTable, ItsFlowsAreLookedAtInTurns) {
  std::deque<Flow> flows;
  HostTable hosts(1);
  for (uint16_t n = 0; n < 3; ++n) hosts.add(flows.emplace_back(n), key(1, 2));
  FlowHost& host = *hosts.heaviest();
  for (int round = 0; round < 2; ++round) {
    for (Flow& flow : flows) EXPECT_EQ(&host.lookAtNext(), &flow);
  }
  hosts.remove(flows[1]);
  EXPECT_EQ(&host.lookAtNext(), &flows[0]);
  EXPECT_EQ(&host.lookAtNext(), &flows[2]);
}

TEST(FlowHostsProperty, TheHeaviestIsTheHeaviest) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::deque<Flow> flows;
    std::vector<FlowKey> keys;
    for (uint16_t n = 0; n < 200; ++n) flows.emplace_back(n);
    std::vector<bool> here(flows.size());
    keys.resize(flows.size());
    HostTable hosts(seed);
    std::map<int, size_t> counts;  // destinations behind 1000
    for (int step = 0; step < 5000; ++step) {
      size_t n = random.below(flows.size());
      int change = here[n] ? -1 : 1;
      if (!here[n]) {
        keys[n] = key(static_cast<uint8_t>(random.below(random.chance(0.5) ? 3 : 100)),
                      static_cast<uint8_t>(random.below(100)));
        hosts.add(flows[n], keys[n]);
      } else {
        hosts.remove(flows[n]);
      }
      here[n] = !here[n];
      counts[keys[n].src[0]] += static_cast<size_t>(change);
      counts[1000 + keys[n].dst[0]] += static_cast<size_t>(change);
      size_t most = 0;
      for (const auto& [host, count] : counts) most = std::max(most, count);
      ASSERT_EQ(hosts.heaviest() ? hosts.heaviest()->flows() : 0, most);
      size_t heavier = std::max(counts[keys[n].src[0]], counts[1000 + keys[n].dst[0]]);
      FlowHost* found = hosts.heavier(keys[n]);
      ASSERT_EQ(found ? found->flows() : 0, heavier);
    }
  }
}

}  // namespace
}  // namespace braid::flow_hosts_test
