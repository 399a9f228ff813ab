#include "tunnel/peer/dialing.h"

#include <gtest/gtest.h>

namespace braid::renewals_test {
namespace {

constexpr Time kRenewed{1000s};

struct RenewalsTest : testing::Test {
  SecretRandom random{knownKey(1)};
  RekeyTimer renewals{random};
};

TEST_F(RenewalsTest, AreDueAfterTheirTimeOrUpToAQuarterEarlier) {
  Time first = kNever, last = Time::min();
  for (int i = 0; i < 1000; ++i) {
    Time due = renewals.dueAt(kRenewed, 1h);
    EXPECT_EQ(renewals.dueAt(kRenewed, 1h), due) << "it is planned once";
    first = std::min(first, due), last = std::max(last, due);
    renewals.onHandshake();
  }
  EXPECT_GE(first, kRenewed + 45min);
  EXPECT_LE(first, kRenewed + 46min);
  EXPECT_LE(last, kRenewed + 1h);
  EXPECT_GE(last, kRenewed + 59min);
}

TEST_F(RenewalsTest, NeverComeWhenTheyAreOff) {
  EXPECT_EQ(renewals.dueAt(kRenewed, 0s), kNever);
  renewals.onFailed(kRenewed);
  EXPECT_EQ(renewals.dueAt(kRenewed, 0s), kNever);
}

TEST_F(RenewalsTest, AreTriedAgainAtGrowingPausesUntilOneSucceeds) {
  Time now = renewals.dueAt(kRenewed, 10s);
  for (Duration pause : {15s, 30s, 60s, 120s, 240s, 300s, 300s}) {
    renewals.onFailed(now);
    EXPECT_EQ(renewals.dueAt(kRenewed, 10s), now + pause);
    now += pause;
  }
  EXPECT_EQ(renewals.failed(), 7u);
  renewals.onHandshake();
  EXPECT_LE(renewals.dueAt(now, 10s), now + 10s);
  renewals.onFailed(now);
  EXPECT_EQ(renewals.dueAt(kRenewed, 10s), now + RekeyTimer::kFirstPause);
}

}  // namespace
}  // namespace braid::renewals_test
