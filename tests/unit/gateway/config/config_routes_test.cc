// `device`: what its routes need of the host.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_routes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string device(const std::string& line) {
  return with(edgeText(), "  routes: [10.1.0.0/16]\n", "  routes: [10.1.0.0/16]\n  " + line + "\n");
}

TEST(ConfigRoutes, MarksAreEightAdjacentBits) {
  EXPECT_EQ(configOf(edgeText()).device.markMask, 0xffu);
  EXPECT_EQ(configOf(device("mark-mask: 0xff0000")).device.markMask, 0xff0000u);
  EXPECT_EQ(configOf(device("mark-mask: '0xff000000'")).device.markMask, 0xff000000u);
  for (const char* wrong : {"0", "0x7f", "0x1ff", "0xff00ff", "0xff00000000", "ff", "0xffz"}) {
    EXPECT_THAT(errorsOf(device(std::string("mark-mask: ") + wrong)),
                ElementsAre("e.yaml:5:14: device.mark-mask: '" + std::string(wrong) +
                            "' is no mask of eight adjacent bits; use one such as 0xff or "
                            "0xff0000"));
  }
}

TEST(ConfigRoutes, WhatBecomesOfThemWhileTheTunnelIsDown) {
  using WhenDown = DeviceConfig::WhenDown;
  EXPECT_EQ(configOf(edgeText()).device.whenDown, WhenDown::kUnset);
  EXPECT_EQ(configOf(device("when-down: block")).device.whenDown, WhenDown::kBlock);
  EXPECT_EQ(configOf(device("when-down: direct")).device.whenDown, WhenDown::kDirect);
  EXPECT_EQ(configOf(device("rule-priority: 500")).device.rulePriority, 500u);
}

TEST(ConfigRoutes, AFamilyThatIsLeftOutIsNoMatterWhereItIsRefused) {
  std::string all = with(with(edgeText(), "routes: [10.1.0.0/16]", "routes: [0.0.0.0/0]"),
                         "prefixes: [10.1.0.0/16, 10.99.0.0/30]", "prefixes: [0.0.0.0/0]");
  EXPECT_EQ(configOf(all).warnings.size(), 1u);
  Config blocks = configOf(with(all, "  routes:", "  when-down: block\n  routes:"));
  EXPECT_THAT(blocks.warnings, IsEmpty());
  EXPECT_TRUE(takeAFamily(blocks.device.routes));
  EXPECT_FALSE(takeAFamily(configOf(edgeText()).device.routes));
}

}  // namespace
}  // namespace braid::config_routes_test
