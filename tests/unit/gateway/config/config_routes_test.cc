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

TEST(ConfigRoutes, MarksOfOtherTunnelsAreWrittenAsIpRuleWritesThem) {
  EXPECT_THAT(configOf(edgeText()).device.bypassMarks, IsEmpty());
  EXPECT_THAT(
      configOf(device("bypass-marks: [0xca6c, 0x80000/0xff0000, '51821']")).device.bypassMarks,
      ElementsAre(MarkMatch{0xca6c, 0xffffffff}, MarkMatch{0x80000, 0xff0000},
                  MarkMatch{51821, 0xffffffff}));
  auto error = [](const std::string& mark) {
    auto errors = errorsOf(device("bypass-marks: ['" + mark + "']"));
    EXPECT_EQ(errors.size(), 1u);
    std::string start = "e.yaml:5:18: device.bypass-marks[0]: ";
    return errors.empty()                 ? ""
           : errors[0].starts_with(start) ? errors[0].substr(start.size())
                                          : "?";
  };
  for (const char* none : {"", "x", "0x", "-1", " 1", "1 ", "0x100000000", "1/", "/1", "1/2/3"})
    EXPECT_EQ(error(none), std::string("'") + none +
                               "' is no packet mark; write MARK or MARK/MASK as 'ip rule' does, "
                               "such as 0xca6c or 0x80000/0xff0000");
  EXPECT_EQ(error("0x80001/0xff0000"),
            "'0x80001/0xff0000' has bits outside of its mask, so no packet has this mark; write "
            "MARK/MASK as 'ip rule' does, such as 0x80000/0xff0000");
  for (const char* unmarked : {"0", "0/0xff0000", "0x0/0"})
    EXPECT_EQ(error(unmarked),
              "0 is the mark of packets that no program has marked; name the mark that the program "
              "gives its packets");
  EXPECT_THAT(errorsOf(device("bypass-marks: [0xca6c, 51821, 0xca6c]")),
              ElementsAre("e.yaml:5:33: device.bypass-marks[2]: 0xca6c is given twice; remove one "
                          "of them"));
}

// Packets of the gateway's own sockets and of streams would pass the guard.
TEST(ConfigRoutes, MarksOfBraidsOwnPacketsAreNoOtherTunnels) {
  for (const char* own :
       {"0x5f", "0x40/0x40", "0x80/0xc0", "0x10040", "0x10000/0x1001f", "0x100bf"})
    EXPECT_THAT(errorsOf(device(std::string("bypass-marks: [") + own + "]")),
                ElementsAre("e.yaml:5:18: device.bypass-marks[0]: " + std::string(own) +
                            " may be a mark of Braid's own packets, 0x40/0xe0 or 0x80/0xc0; name "
                            "more bits of it, or give Braid other bits by device.mark-mask, such "
                            "as 0xff000000"));
  EXPECT_THAT(errorsOf(device("bypass-marks: [0xca6c]\n  mark-mask: 0xff00")), IsEmpty());
  EXPECT_THAT(errorsOf(device("bypass-marks: [0x5f]\n  mark-mask: 0xff00")), IsEmpty());
  EXPECT_THAT(errorsOf(device("bypass-marks: [0x80000/0xff0000]\n  mark-mask: 0xff0000")),
              IsEmpty());
  EXPECT_THAT(errorsOf(device("bypass-marks: [0x400000/0xff0000]\n  mark-mask: 0xff0000")),
              ElementsAre(testing::HasSubstr("0x400000/0xe00000 or 0x800000/0xc00000; name more "
                                             "bits of it, or give Braid other bits by "
                                             "device.mark-mask, such as 0xff")));
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
