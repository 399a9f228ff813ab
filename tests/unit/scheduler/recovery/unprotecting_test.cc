// The policies that do not protect unacknowledged data: "none", and those that send everything
// twice at once.

#include <gtest/gtest.h>

#include "scheduler/recovery/recovery.h"

namespace braid::unprotecting_test {
namespace {

struct Unprotecting {
  const char* name;
  Duplication duplication;
};

class UnprotectingTest : public testing::TestWithParam<Unprotecting> {
 protected:
  std::unique_ptr<RecoveryPolicy> policy_ = makeRecoveryPolicy(GetParam().name, {}, 1);
};

TEST_P(UnprotectingTest, DuplicatesAsItsNameSays) {
  EXPECT_EQ(policy_->duplication(), GetParam().duplication);
}

TEST_P(UnprotectingTest, NeverProtects) {
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
    RecoveryView view{
        .chance = chance, .paths = {&path, 1}, .now = Time{1h}, .ended = true, .paritiesLeft = 1};
    EXPECT_EQ(policy_->notBefore(view), kNever);
    EXPECT_FALSE(policy_->choose(view));
  }
  EXPECT_FALSE(policy_->choose({}));
  EXPECT_EQ(policy_->nextDeadline(), kNever);
  EXPECT_FALSE(policy_->takesTurns());
}

TEST_P(UnprotectingTest, LostDataIsRepairedOnItsOwnPath) {
  EXPECT_EQ(policy_->repairPlace(), RepairPlace::kOwnPath);
}

INSTANTIATE_TEST_SUITE_P(Policies, UnprotectingTest,
                         testing::Values(Unprotecting{"none", Duplication::kNone},
                                         Unprotecting{"redundant", Duplication::kOtherPath},
                                         Unprotecting{"proactive", Duplication::kSamePath}),
                         [](const auto& policy) { return policy.param.name; });

}  // namespace
}  // namespace braid::unprotecting_test
