#include "scheduler/no_recovery.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(NoRecovery, NeverProtects) {
  NoRecovery policy;
  const RecoveryPath path{.usable = true,
                          .open = true,
                          .srtt = 10ms,
                          .window = 100'000,
                          .sent = 10,
                          .lost = 5,
                          .sinceLoss = 1,
                          .uncopied = 5,
                          .uncoded = 5,
                          .unacked = 5};
  for (auto chance : {RecoveryChance::kIdle, RecoveryChance::kTurn}) {
    EXPECT_FALSE(policy.choose(
        {.chance = chance, .paths = {&path, 1}, .now = Time{1h}, .ended = true, .paritiesLeft = 1}));
  }
  EXPECT_FALSE(policy.choose({}));
  EXPECT_EQ(policy.duplication(), Duplication::kNone);
  EXPECT_EQ(policy.repairPlace(), RepairPlace::kOwnPath);
  EXPECT_EQ(policy.nextDeadline(), kNever);
}

}  // namespace
}  // namespace braid
