// The flow that drops packets at the byte limit: one with a long queue, found without a walk over
// all flows.

#include "tunnel/queue/flow_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/queue/packet_queue_bench.h"

namespace braid::fattest_queues_test {
namespace {

using Bench = PacketLaneBench;

TEST(FattestQueues, NoneIsFatWhenAllAreEmpty) {
  FattestQueues fat;
  EXPECT_EQ(fat.fattest(), nullptr);
  Flow flow(0);
  fat.onChange(flow);
  EXPECT_EQ(fat.fattest(), nullptr);
}

TEST(FattestQueues, TheBoundMeetsAFatFlowAmongThousands) {
  constexpr uint16_t kThin = 3000;
  Bench b({.queueBytes = (kThin + 20) * Bench::kBuffer});
  for (uint16_t n = 1; n <= kThin; ++n) b.in(n, 40);
  for (int i = 0; i < 40; ++i) b.in(4000, 40);
  EXPECT_EQ(b.drops(Drop::kQueueFull), b.flow(4000)->queue.counts().drops)
      << "of the fat one alone";
  EXPECT_GE(b.drops(Drop::kQueueFull), 20u);
}

TEST(FattestQueuesProperty, WhoDropsHoldsMoreThanFourFifthsOfTheMost) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Bench b({.queueBytes = 200'000});
    constexpr uint16_t kFlows = 50;
    for (int step = 0; step < 4000; ++step) {
      if (random.chance(0.2)) b.out();
      uint64_t before = b.drops(Drop::kQueueFull);
      std::vector<size_t> held(kFlows);
      std::vector<uint64_t> dropped(kFlows);
      for (uint16_t n = 0; n < kFlows; ++n) {
        if (const Flow* flow = b.flow(n))
          held[n] = flow->queue.footprint(), dropped[n] = flow->queue.counts().drops;
      }
      auto into = static_cast<uint16_t>(random.below(random.chance(0.7) ? 5 : kFlows));
      b.in(into, 40 + random.below(1460));
      if (b.drops(Drop::kQueueFull) == before) continue;
      held[into] += Bench::kBuffer;
      size_t most = *std::max_element(held.begin(), held.end());
      for (uint16_t n = 0; n < kFlows; ++n) {
        const Flow* flow = b.flow(n);
        if (!flow || flow->queue.counts().drops == dropped[n]) continue;
        ASSERT_GT(5 * held[n], 4 * most) << "flow " << n;
      }
    }
    EXPECT_GT(b.drops(Drop::kQueueFull), 100u);
  }
}

}  // namespace
}  // namespace braid::fattest_queues_test
