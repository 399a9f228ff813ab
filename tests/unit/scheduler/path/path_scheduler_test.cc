#include "scheduler/path/path_scheduler.h"

#include <gtest/gtest.h>

#include "scheduler/path/earliest.h"
#include "scheduler/path/ecf.h"

namespace braid::path_scheduler_test {
namespace {

TEST(MakePathScheduler, ByName) {
  EXPECT_NE(dynamic_cast<Earliest*>(makePathScheduler("earliest").get()), nullptr);
  EXPECT_NE(dynamic_cast<Ecf*>(makePathScheduler("ecf").get()), nullptr);
  EXPECT_NE(dynamic_cast<MinRtt*>(makePathScheduler("minrtt").get()), nullptr);
  EXPECT_NE(dynamic_cast<Weighted*>(makePathScheduler("weighted").get()), nullptr);
}

TEST(MakePathScheduler, EveryNameIsKnown) {
  for (std::string_view name : kPathSchedulerNames)
    EXPECT_NE(makePathScheduler(name), nullptr) << name;
}

TEST(MakePathScheduler, UnknownName) {
  EXPECT_EQ(makePathScheduler(""), nullptr);
}

}  // namespace
}  // namespace braid::path_scheduler_test
