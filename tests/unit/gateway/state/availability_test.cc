#include "gateway/state/availability.h"

#include <gtest/gtest.h>

#include <cmath>

namespace braid::availability_test {
namespace {

constexpr Time kBegin{500'000h};

std::vector<UplinkStatus> uplinks(std::initializer_list<const char*> names) {
  std::vector<UplinkStatus> out;
  for (const char* name : names) out.emplace_back().name = name;
  return out;
}

TEST(AvailabilityTest, IsTheShareOfTheLooksAtWhichAPathWorked) {
  Availability all;
  EXPECT_TRUE(std::isnan(all.of("lte"))) << "not known yet";
  for (int i = 0; i < 8; ++i)
    all.look(uplinks({"dsl", "lte"}),
             i < 6 ? std::set<std::string>{"dsl", "lte"} : std::set<std::string>{"dsl"},
             kBegin + i * 10s);
  std::vector<UplinkStatus> told = uplinks({"lte", "dsl", "new"});
  all.addTo(told);
  EXPECT_EQ(told[0].availability, 0.75);
  EXPECT_EQ(told[1].availability, 1.0);
  EXPECT_TRUE(std::isnan(told[2].availability));
}

TEST(AvailabilityTest, ADayAgoIsForgotten) {
  Availability all;
  all.look(uplinks({"lte"}), {}, kBegin);
  all.look(uplinks({"lte"}), {"lte"}, kBegin + 23h);
  EXPECT_EQ(all.of("lte"), 0.5);
  all.look(uplinks({"lte"}), {"lte"}, kBegin + 24h);
  EXPECT_EQ(all.of("lte"), 1.0) << "its hour is that of a day ago";
  all.look(uplinks({"lte"}), {}, kBegin + 200h);
  EXPECT_EQ(all.of("lte"), 0.0) << "the host slept meanwhile";
}

TEST(AvailabilityTest, AnUplinkThatWasRemovedIsForgotten) {
  Availability all;
  all.look(uplinks({"lte"}), {}, kBegin);
  all.look(uplinks({}), {}, kBegin + 10s);
  all.look(uplinks({"lte"}), {"lte"}, kBegin + 20s);
  EXPECT_EQ(all.of("lte"), 1.0);
}

}  // namespace
}  // namespace braid::availability_test
