#include "gateway/config/address_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.h"

namespace braid {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts(const std::vector<AddressRange>& ranges) {
  std::vector<std::string> out;
  for (const AddressRange& r : ranges) out.push_back(r.first.toString() + "-" + r.last.toString());
  return out;
}
std::vector<Prefix> prefixes(std::initializer_list<const char*> list) {
  std::vector<Prefix> out;
  for (const char* text : list) out.push_back(*Prefix::parse(text));
  return out;
}

TEST(StreamTargets, PrefixesBesideEachOtherStayWhatTheyAre) {
  EXPECT_THAT(texts(rangesOf(prefixes({"10.2.0.0/16", "10.1.0.0/24"}))),
              ElementsAre("10.1.0.0-10.1.0.255", "10.2.0.0-10.2.255.255"));
  EXPECT_THAT(rangesOf({}), IsEmpty());
}

TEST(StreamTargets, AnInnerPrefixTakesItsPartOut) {
  EXPECT_THAT(texts(rangesOf(prefixes({"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16"}))),
              ElementsAre("0.0.0.0-9.255.255.255", "10.0.0.0-10.0.255.255", "10.1.0.0-10.1.255.255",
                          "10.2.0.0-10.255.255.255", "11.0.0.0-255.255.255.255"));
}

TEST(StreamTargets, APrefixThatEndsWithTheOneAroundIt) {
  EXPECT_THAT(texts(rangesOf(prefixes({"10.0.0.0/24", "10.0.0.128/25", "10.0.0.255"}))),
              ElementsAre("10.0.0.0-10.0.0.127", "10.0.0.128-10.0.0.254", "10.0.0.255-10.0.0.255"));
  EXPECT_THAT(texts(rangesOf(prefixes({"0.0.0.0/0", "255.255.255.255"}))),
              ElementsAre("0.0.0.0-255.255.255.254", "255.255.255.255-255.255.255.255"));
}

TEST(StreamTargets, FamiliesAreApart) {
  EXPECT_THAT(texts(rangesOf(prefixes({"::/0", "0.0.0.0/0", "fd00::/8"}))),
              ElementsAre("0.0.0.0-255.255.255.255", "::-fcff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                          "fd00::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                          "fe00::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
}

TEST(StreamTargets, WhatTouchesIsJoined) {
  EXPECT_THAT(
      texts(joined(rangesOf(prefixes({"10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8", "13.0.0.0/8"})))),
      ElementsAre("10.0.0.0-11.255.255.255", "13.0.0.0-13.255.255.255"));
}

// Each address is in the range whose addresses have the same longest prefix, and in no other.
TEST(StreamTargets, EveryAddressHasTheLongestPrefixOfItsRange) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Prefix> all;
    PrefixTable table;
    for (uint64_t i = 0, count = 1 + random.below(12); i < count; ++i) {
      // Few bits in few places, so that prefixes lie in each other.
      auto part = [&] { return std::to_string(random.below(3) * 127); };
      auto prefix = Prefix::parse("10.0." + part() + "." + part() + "/" +
                                  std::to_string(14 + random.below(19)));
      all.push_back(*prefix);
      table.insert(*prefix, i);
    }
    std::vector<AddressRange> ranges = rangesOf(all);
    for (size_t i = 0; i + 1 < ranges.size(); ++i) ASSERT_LT(ranges[i].last, ranges[i + 1].first);
    for (int look = 0; look < 300; ++look) {
      Address a = *Address::parse("10." + std::to_string(random.below(5)) + "." +
                                  std::to_string(random.below(256)) + "." +
                                  std::to_string(random.below(256)));
      auto holds = [&](const AddressRange& r) { return r.first <= a && a <= r.last; };
      auto at = std::find_if(ranges.begin(), ranges.end(), holds);
      ASSERT_EQ(table.find(a).has_value(), at != ranges.end()) << a.toString();
      if (at == ranges.end()) continue;
      ASSERT_EQ(table.find(a), table.find(at->first)) << a.toString();
      ASSERT_EQ(table.find(a), table.find(at->last)) << a.toString();
    }
  }
}

}  // namespace
}  // namespace braid
