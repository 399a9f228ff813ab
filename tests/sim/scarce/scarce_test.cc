// Allocations fail while two gateways start and establish a session. Wherever that happens,
// std::bad_alloc must reach the caller and everything must be freed; sanitizers check for leaks. (A
// daemon then ends in good order: docs/operations.md.)

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "tests/heap.h"
#include "tests/sim/scenario.h"

namespace braid::sim::scarce_test {
namespace {

// Starts two gateways and carries some packets over their session. True when the session came up.
bool live() {
  World world(3);
  TunnelOptions options;
  options.recovery = "cofuso";
  Node& edge = world.addNode("edge", options);
  Node& hub = world.addNode("hub", options);
  edge.poolLimit = hub.poolLimit = 1024;
  world.pair(edge, hub);
  world.join(edge, hub, "dsl", kDsl, kDsl);
  world.join(edge, hub, "lte", kLte, kLte);
  world.start();
  TcpOptions small;
  small.bytes = 60'000;
  TcpFlow& file = world.add<TcpFlow>(hub, edge, uint16_t{1000}, small);
  return world.runUntil([&] { return file.done(); }, 5s) && file.wrongBytes() == 0;
}

TEST(Scarce, EveryAllocationOfASessionMayFail) {
  constexpr int64_t kPlaces = 400;
  ASSERT_TRUE(live());
  const uint64_t before = test::allocations;
  ASSERT_TRUE(live());
  const auto all = static_cast<int64_t>(test::allocations - before);
  ASSERT_GT(all, 100);
  int64_t thrown = 0, tried = 0;
  for (int64_t n = 1; n <= all; n += std::max<int64_t>(1, all / kPlaces), ++tried) {
    test::failingAllocation = n;
    try {
      // A failed allocation of a packet buffer is a counted drop, and everything else still
      // succeeds.
      EXPECT_TRUE(live()) << "allocation " << n;
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
    test::failingAllocation = 0;
  }
  EXPECT_GT(thrown, tried / 2);
}

}  // namespace
}  // namespace braid::sim::scarce_test
