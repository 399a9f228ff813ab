#include "inet/prefix.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tests/unit/inet/packets.h"

namespace braid {
namespace {

using test::addr;

Prefix prefix(std::string_view text) {
  return Prefix::parse(text).value();
}

TEST(PrefixTest, ParsesAndClearsHostBits) {
  EXPECT_EQ(prefix("10.0.0.0/8").toString(), "10.0.0.0/8");
  EXPECT_EQ(prefix("10.255.255.255/8").toString(), "10.0.0.0/8");
  EXPECT_EQ(prefix("10.255.255.255/13").toString(), "10.248.0.0/13");
  EXPECT_EQ(prefix("192.0.2.77/0").toString(), "0.0.0.0/0");
  EXPECT_EQ(prefix("192.0.2.77/32").toString(), "192.0.2.77/32");
  EXPECT_EQ(prefix("192.0.2.77").toString(), "192.0.2.77/32");
  EXPECT_EQ(prefix("fdff:ffff::1/16").toString(), "fdff::/16");
  EXPECT_EQ(prefix("2001:db8::ffff/121").toString(), "2001:db8::ff80/121");
  EXPECT_EQ(prefix("::1").toString(), "::1/128");
}

TEST(PrefixTest, RefusesWhatIsNoPrefix) {
  for (std::string_view text : {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8",
                                "10.0.0.0/8 ", "10.0.0.0/99999999999", "10.0.0/8", "fd00::/129", "x/8"}) {
    EXPECT_FALSE(Prefix::parse(text)) << text;
  }
}

TEST(PrefixTest, ContainsToTheBit) {
  EXPECT_TRUE(prefix("10.8.0.0/13").contains(addr("10.15.255.255")));
  EXPECT_FALSE(prefix("10.8.0.0/13").contains(addr("10.16.0.0")));
  EXPECT_FALSE(prefix("10.8.0.0/13").contains(addr("10.7.255.255")));
  EXPECT_TRUE(prefix("2001:db8::/33").contains(addr("2001:db8:7fff::")));
  EXPECT_FALSE(prefix("2001:db8::/33").contains(addr("2001:db8:8000::")));
  EXPECT_TRUE(prefix("192.0.2.1").contains(addr("192.0.2.1")));
  EXPECT_FALSE(prefix("192.0.2.1").contains(addr("192.0.2.0")));
  EXPECT_TRUE(prefix("::1").contains(addr("::1")));
}

TEST(PrefixTest, FamiliesStayApart) {
  EXPECT_FALSE(prefix("0.0.0.0/0").contains(addr("::")));
  EXPECT_FALSE(prefix("::/0").contains(addr("0.0.0.0")));
  EXPECT_FALSE(prefix("0.0.0.0/0").contains(Address{}));
  EXPECT_FALSE(Prefix{}.contains(Address{}));
}

TEST(PrefixTableTest, LongestWinsInAnyOrderOfInsertion) {
  for (bool reverse : {false, true}) {
    std::vector<std::pair<const char*, size_t>> rows = {
        {"0.0.0.0/0", 0}, {"10.0.0.0/8", 1}, {"10.1.0.0/16", 2}, {"10.1.1.1/32", 3}, {"fd00::/8", 4}};
    if (reverse) std::reverse(rows.begin(), rows.end());
    PrefixTable table;
    for (auto [text, value] : rows) EXPECT_TRUE(table.insert(prefix(text), value));
    EXPECT_EQ(table.find(addr("10.1.1.1")), 3u);
    EXPECT_EQ(table.find(addr("10.1.1.2")), 2u);
    EXPECT_EQ(table.find(addr("10.2.1.1")), 1u);
    EXPECT_EQ(table.find(addr("11.2.1.1")), 0u);
    EXPECT_EQ(table.find(addr("fd00::1")), 4u);
    EXPECT_EQ(table.find(addr("fe00::1")), std::nullopt);
  }
}

TEST(PrefixTableTest, SamePrefixTwiceIsRefused) {
  PrefixTable table;
  EXPECT_TRUE(table.insert(prefix("10.0.0.0/8"), 1));
  EXPECT_FALSE(table.insert(prefix("10.99.0.0/8"), 2));
  EXPECT_TRUE(table.insert(prefix("11.0.0.0/8"), 2));
  EXPECT_EQ(table.find(addr("10.0.0.1")), 1u);
  EXPECT_EQ(table.find(addr("11.0.0.1")), 2u);
  table.clear();
  EXPECT_EQ(table.find(addr("10.0.0.1")), std::nullopt);
  EXPECT_TRUE(table.insert(prefix("10.0.0.0/8"), 3));
}

/// Bit by bit, as the definition says.
bool matches(const Prefix& p, const Address& a) {
  for (unsigned i = 0; i < p.length; ++i) {
    if (((p.address.bytes[i / 8] ^ a.bytes[i / 8]) >> (7 - i % 8)) & 1) return false;
  }
  return p.address.family == a.family;
}

TEST(PrefixTableTest, AgreesWithBitwiseSearch) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  auto randomAddress = [&] {  // few distinct bits, so that prefixes nest often
    uint8_t b[4] = {10, static_cast<uint8_t>(random.below(2) << 7), 0,
                    static_cast<uint8_t>(random.below(8) << 5)};
    return Address::v4(b);
  };
  PrefixTable table;
  std::vector<Prefix> prefixes;
  for (size_t i = 0; i < 60; ++i) {
    Prefix p = prefix(randomAddress().toString() + "/" + std::to_string(random.below(33)));
    if (table.insert(p, prefixes.size())) prefixes.push_back(p);
  }
  for (int i = 0; i < 500; ++i) {
    Address a = randomAddress();
    std::optional<size_t> best;
    for (size_t j = 0; j < prefixes.size(); ++j) {
      if (matches(prefixes[j], a) && (!best || prefixes[j].length > prefixes[*best].length)) best = j;
    }
    EXPECT_EQ(table.find(a), best) << a.toString();
  }
}

}  // namespace
}  // namespace braid
