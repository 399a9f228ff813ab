// The uplinks of a gateway that joins: names, and which are paid for by volume.

#include "ctl/join/uplink_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_arp.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.h"

namespace braid::uplink_choice_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct UplinkChoice : testing::Test {
  UplinkChoice() {
    for (const char* name : {"eth0", "wwan0", "a=b"}) {
      Link link;
      link.index = ++last;
      link.name = name;
      link.hardware = ARPHRD_ETHER;
      link.up = link.on = true;
      table.setLink(link);
      if (last < 3)
        table.addDefaultRoute({Address::Family::kV4, last, {}, static_cast<uint32_t>(10 * last)});
    }
  }
  std::vector<PlannedUplink> choose(const UplinkWords& words) {
    return chooseUplinks(words, true, table, "braid0", terminal);
  }
  std::string problem(const UplinkWords& words) {
    try {
      return "none: " + describe(choose(words));
    } catch (const std::runtime_error& e) {
      return e.what();
    }
  }
  NetworkTable table;
  int last = 0;
  UserTerminal terminal;
};

TEST_F(UplinkChoice, WithoutWordsAModemIsMeteredAndNamesAreTheInterfaces) {
  EXPECT_THAT(choose({}), ElementsAre(PlannedUplink{"eth0", "eth0", false, ""},
                                      PlannedUplink{"wwan0", "wwan0", true, ""}));
  EXPECT_EQ(describe(choose({})), "eth0, wwan0 (metered)");
}

TEST_F(UplinkChoice, WordsNameUplinksAndTheirCaps) {
  const auto uplinks = choose({{"eth0=dsl", "wwan0=lte", "a=b"}, {"lte=50GB", "eth0"}});
  EXPECT_THAT(uplinks, ElementsAre(PlannedUplink{"eth0", "dsl", true, ""},
                                   PlannedUplink{"wwan0", "lte", true, "50GB"},
                                   PlannedUplink{"a=b", "a=b", false, ""}));
  EXPECT_EQ(describe(uplinks), "dsl (eth0; metered), lte (wwan0; metered, 50GB a month), a=b");
  EXPECT_THAT(interfacesOf(uplinks), ElementsAre("eth0", "wwan0", "a=b"));
  EXPECT_EQ(describe(choose({{"wwan0"}, {"none"}})), "wwan0");
}

TEST_F(UplinkChoice, WrongWordsAreToldWithARemedy) {
  EXPECT_EQ(problem({{"wan9"}, {}}), "there is no interface wan9; 'ip link' lists them");
  EXPECT_THAT(problem({{"eth0=two words"}, {}}),
              HasSubstr("is no name of an uplink; take 1 to 32"));
  EXPECT_THAT(problem({{"eth0=x", "wwan0=x"}, {}}), HasSubstr("cannot both be called x"));
  EXPECT_THAT(problem({{"eth0"}, {"wwan0"}}), HasSubstr("wwan0 is none of the uplinks, eth0"));
  for (const char* cap : {"50", "1MB", "much", "-1GB"})
    EXPECT_THAT(problem({{}, {std::string("wwan0=") + cap}}), HasSubstr("such as 50GB")) << cap;
  table.removeLink(1);
  table.removeLink(2);
  EXPECT_THAT(problem({}), HasSubstr("has a default route; connect one"));
}

TEST(Modem, IsWhatTheKernelCallsOne) {
  TemporaryFolder classes;
  for (const char* name : {"usb0", "usb1"}) std::filesystem::create_directory(classes.file(name));
  std::ofstream(classes.file("usb0") + "/uevent") << "INTERFACE=usb0\nDEVTYPE=wwan\n";
  std::ofstream(classes.file("usb1") + "/uevent") << "DEVTYPE=wlan\n";
  auto link = [](const char* name, const char* kind) {
    Link out;
    out.name = name;
    out.kind = kind;
    return out;
  };
  for (const Link& modem : {link("usb0", ""), link("wwan1", ""), link("m", "rmnet")})
    EXPECT_TRUE(isModem(modem, classes.path())) << modem.name;
  for (const Link& other : {link("usb1", ""), link("lte0", "veth"), link("gone", "")})
    EXPECT_FALSE(isModem(other, classes.path())) << other.name;
}

}  // namespace
}  // namespace braid::uplink_choice_test
