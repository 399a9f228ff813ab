// Runs some minutes of sim_soak; scripts/target shield.9 runs 72 hours.

#include <gtest/gtest.h>

#include "tests/sim/soak_run.h"

namespace braid::sim::soak_test {
namespace {

TEST(Soak, LosesNothing) {
  SoakResult r = soakRun(1, 6min);
  EXPECT_EQ(r.wrongBytes, 0u);
  EXPECT_EQ(r.resets, 0u);
  EXPECT_EQ(r.keptPackets, 0u);
  EXPECT_EQ(r.broken, "");
  EXPECT_GE(r.rekeys, 5u);
  EXPECT_GE(r.flaps, 6u);
  EXPECT_GE(r.moves, 2u);
  EXPECT_GE(r.reloads, 1u);
  EXPECT_GT(r.transferred, 15'000'000u);
}

}  // namespace
}  // namespace braid::sim::soak_test
