#include "scheduler/path_scheduler.h"

#include <gtest/gtest.h>

#include "scheduler/earliest.h"
#include "scheduler/ecf.h"
#include "scheduler/min_rtt.h"
#include "scheduler/weighted.h"

namespace braid {
namespace {

TEST(MakePathScheduler, ByName) {
  EXPECT_NE(dynamic_cast<Earliest*>(makePathScheduler("earliest").get()), nullptr);
  EXPECT_NE(dynamic_cast<Ecf*>(makePathScheduler("ecf").get()), nullptr);
  EXPECT_NE(dynamic_cast<MinRtt*>(makePathScheduler("minrtt").get()), nullptr);
  EXPECT_NE(dynamic_cast<Weighted*>(makePathScheduler("weighted").get()), nullptr);
}

TEST(MakePathScheduler, EveryNameIsKnown) {
  for (std::string_view name : kPathSchedulerNames) EXPECT_NE(makePathScheduler(name), nullptr) << name;
}

TEST(MakePathScheduler, UnknownName) {
  EXPECT_EQ(makePathScheduler(""), nullptr);
}

}  // namespace
}  // namespace braid
