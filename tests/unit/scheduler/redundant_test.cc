#include "scheduler/redundant.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Redundant, EachPacketOnTheTwoBestPaths) {
  EXPECT_EQ(Redundant{}.duplication(), Duplication::kOtherPath);
}

TEST(Redundant, NoOtherProtection) {
  Redundant policy;
  const RecoveryPath path{.usable = true,
                          .open = true,
                          .srtt = 10ms,
                          .window = 100'000,
                          .sent = 10,
                          .uncopied = 5,
                          .uncoded = 5,
                          .unacked = 5};
  EXPECT_FALSE(policy.choose({.paths = {&path, 1}, .now = Time{1h}}));
  EXPECT_EQ(policy.nextDeadline(), kNever);
}

TEST(Redundant, LostDataIsRepairedOnItsOwnPath) {
  EXPECT_EQ(Redundant{}.repairPlace(), RepairPlace::kOwnPath);
}

}  // namespace
}  // namespace braid
