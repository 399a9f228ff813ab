#include "host/linux/process.h"

#include <gtest/gtest.h>

#include <new>

namespace braid::memory_reserve_test {
namespace {

TEST(MemoryReserve, TheFirstAllocationThatFailsGetsItAndTheNextOneFails) {
  ASSERT_TRUE(holdMemoryReserve());
  std::new_handler giveAway = std::get_new_handler();
  ASSERT_TRUE(giveAway);
  EXPECT_NO_THROW(giveAway());
  EXPECT_FALSE(releaseMemoryReserve()) << "it is given away";
  EXPECT_THROW(giveAway(), std::bad_alloc);
  EXPECT_TRUE(holdMemoryReserve()) << "there is memory again";
  EXPECT_NO_THROW(giveAway());
}

TEST(MemoryReserve, IsHeldOnce) {
  ASSERT_TRUE(holdMemoryReserve());
  EXPECT_TRUE(holdMemoryReserve());
  EXPECT_TRUE(releaseMemoryReserve());
  EXPECT_FALSE(releaseMemoryReserve());
}

}  // namespace
}  // namespace braid::memory_reserve_test
