#include "scheduler/controller.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(MakeController, ByName) {
  auto controller = makeController("newreno", 1200);
  ASSERT_NE(controller, nullptr);
  EXPECT_EQ(controller->window(), 12000u);
}

TEST(MakeController, UnknownName) {
  EXPECT_EQ(makeController("newreno2", 1200), nullptr);
}

}  // namespace
}  // namespace braid
