#include "scheduler/proactive.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Proactive, EachPacketTwiceOnItsOwnPath) {
  EXPECT_EQ(Proactive{}.duplication(), Duplication::kSamePath);
}

TEST(Proactive, NoOtherProtection) {
  Proactive policy;
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

TEST(Proactive, LostDataIsRepairedOnItsOwnPath) {
  EXPECT_EQ(Proactive{}.repairPlace(), RepairPlace::kOwnPath);
}

}  // namespace
}  // namespace braid
