// A packet that passes both cores causes no allocation, once windows, pools and tables have grown.

#include <gtest/gtest.h>

#include "bench/two_cores.h"
#include "tests/heap.h"

namespace braid::sim::allocation_test {
namespace {

constexpr int kBatch = 8;  // packets per turn

void carry(TwoCores& cores, int turns, size_t bytes, size_t flows) {
  for (int turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < kBatch; ++i) cores.send(bytes, flows);
    cores.step(800us);
  }
}

struct Traffic {
  size_t bytes, flows;
};

class AllocationTest : public testing::TestWithParam<Traffic> {};

TEST_P(AllocationTest, APacketAllocatesNothing) {
  const auto [bytes, flows] = GetParam();
  TwoCores cores(2);
  carry(cores, 3000, bytes, flows);
  const uint64_t before = test::allocations, delivered = cores.delivered();
  carry(cores, 1000, bytes, flows);
  EXPECT_EQ(test::allocations - before, 0u);
  EXPECT_GT(cores.delivered() - delivered, 7000u);
}

INSTANTIATE_TEST_SUITE_P(Sizes, AllocationTest,
                         testing::Values(Traffic{1437, 1}, Traffic{1437, 100}, Traffic{100, 1}));

}  // namespace
}  // namespace braid::sim::allocation_test
