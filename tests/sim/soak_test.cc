// A quarter of an hour of sim_soak; scripts/target shield.9 has 72 hours.

#include <gtest/gtest.h>

#include "tests/sim/soak_run.h"

namespace braid::sim::soak_test {
namespace {

TEST(Soak, LosesNothingInAQuarterOfAnHour) {
  SoakResult r = soakRun(1, 15min);
  EXPECT_EQ(r.wrongBytes, 0u);
  EXPECT_EQ(r.resets, 0u);
  EXPECT_EQ(r.keptPackets, 0u);
  EXPECT_EQ(r.broken, "");
  EXPECT_GE(r.rekeys, 14u);
  EXPECT_GE(r.flaps, 15u);
  EXPECT_GE(r.moves, 2u);
  EXPECT_GE(r.reloads, 2u);
  EXPECT_GT(r.transferred, 50'000'000u);
}

}  // namespace
}  // namespace braid::sim::soak_test
