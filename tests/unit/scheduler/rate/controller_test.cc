#include "scheduler/rate/controller.h"

#include <gtest/gtest.h>

#include "scheduler/rate/controller_group.h"

namespace braid::controller_test {
namespace {

TEST(MakeController, ByName) {
  auto controller = makeController("newreno", 1200);
  ASSERT_NE(controller, nullptr);
  EXPECT_EQ(controller->window(), 12000u);
}

TEST(MakeController, EveryNameOfTheList) {
  for (std::string_view name : kControllerNames) {
    ControllerGroup group;
    EXPECT_NE(makeController(name, 1200), nullptr) << name;
    auto grouped = makeController(name, {.datagram = 1200, .initialWindow = 4, .amp = {}}, &group);
    ASSERT_NE(grouped, nullptr) << name;
    EXPECT_EQ(grouped->window(), 4800u) << name;
    grouped->setUsable(true, {});
    bool coupled = name == "amp" || name == "dcm" || name == "lia" || name == "xmp";
    EXPECT_EQ(group.totalWindow(), coupled ? 4800 : 0) << name;
    EXPECT_EQ(grouped->suppressedAt(), kNever) << name;
  }
}

TEST(MakeController, AmpTakesItsOptions) {
  auto amp = makeController("amp", {.datagram = 1000, .initialWindow = 10, .amp = {.beta = 2}});
  amp->onMarks(1, Time{} + 1s, Time{} + 1100ms);
  EXPECT_EQ(amp->window(), 5000u);
}

TEST(MakeController, UnknownName) {
  EXPECT_EQ(makeController("newreno2", 1200), nullptr);
}

}  // namespace
}  // namespace braid::controller_test
