#include "inet/addresses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/unit/inet/packets.h"

namespace braid::prefix_test {
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
  for (std::string_view text :
       {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/8 ",
        "10.0.0.0/99999999999", "10.0.0/8", "fd00::/129", "x/8"}) {
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

TEST(PrefixTest, OverlapsWhatItHoldsAndWhatHoldsIt) {
  EXPECT_TRUE(prefix("10.8.0.0/13").overlaps(prefix("10.9.0.0/16")));
  EXPECT_TRUE(prefix("10.9.0.0/16").overlaps(prefix("10.8.0.0/13")));
  EXPECT_TRUE(prefix("::/0").overlaps(prefix("fd00::1")));
  EXPECT_FALSE(prefix("10.8.0.0/13").overlaps(prefix("10.16.0.0/13")));
  EXPECT_FALSE(prefix("0.0.0.0/0").overlaps(prefix("::/0")));
}

TEST(PrefixTest, HalfOfEverythingIsEverything) {
  for (std::string_view text : {"0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "8000::/1", "::/2",
                                "2000::/3", "2000::/4", "3000::/4"})
    EXPECT_TRUE(prefix(text).isEverything()) << text;
  for (std::string_view text : {"0.0.0.0/2", "192.0.0.0/2", "32.0.0.0/3", "10.0.0.0/8", "::1",
                                "::/3", "2000::/5", "8000::/2", "fc00::/7"})
    EXPECT_FALSE(prefix(text).isEverything()) << text;
}

TEST(PrefixTest, FamiliesStayApart) {
  EXPECT_FALSE(prefix("0.0.0.0/0").contains(addr("::")));
  EXPECT_FALSE(prefix("::/0").contains(addr("0.0.0.0")));
  EXPECT_FALSE(prefix("0.0.0.0/0").contains(Address{}));
  EXPECT_FALSE(Prefix{}.contains(Address{}));
}

TEST(PrefixTableTest, LongestWinsInAnyOrderOfInsertion) {
  for (bool reverse : {false, true}) {
    std::vector<std::pair<const char*, size_t>> rows = {{"0.0.0.0/0", 0},
                                                        {"10.0.0.0/8", 1},
                                                        {"10.1.0.0/16", 2},
                                                        {"10.1.1.1/32", 3},
                                                        {"fd00::/8", 4}};
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

/// The definition, bit by bit.
bool matches(const Prefix& p, const Address& a) {
  for (unsigned i = 0; i < p.length; ++i) {
    if (((p.address.bytes[i / 8] ^ a.bytes[i / 8]) >> (7 - i % 8)) & 1) return false;
  }
  return p.address.family == a.family;
}

/// The prefix that a table of these prefixes must find, by the definition: prefix by prefix and bit
/// by bit.
std::optional<size_t> longestOf(const std::vector<Prefix>& prefixes, const Address& a) {
  std::optional<size_t> best;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (matches(prefixes[i], a) && (!best || prefixes[i].length > prefixes[*best].length)) best = i;
  }
  return best;
}

// Addresses have few distinct bits, so that prefixes nest, part and repeat often.
TEST(PrefixTableTest, AgreesWithBitwiseSearch) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    auto randomAddress = [&] {
      std::array<uint8_t, 16> b{10};
      bool v6 = random.below(3) == 0;
      b[1] = static_cast<uint8_t>(random.below(2) << 7);
      b[3] = static_cast<uint8_t>(random.below(8) << 5);
      if (v6) b[15] = static_cast<uint8_t>(random.below(16));
      return v6 ? Address::v6(b) : Address::v4(ByteView(b).first(4));
    };
    PrefixTable table;
    std::vector<Prefix> prefixes;
    for (size_t i = 0; i < 10 * seed; ++i) {
      Address a = randomAddress();
      Prefix p = prefix(a.toString() + "/" + std::to_string(random.below(a.bits() + 1)));
      bool fresh = std::find(prefixes.begin(), prefixes.end(), p) == prefixes.end();
      ASSERT_EQ(table.insert(p, prefixes.size()), fresh) << p.toString();
      if (fresh) prefixes.push_back(p);
    }
    for (int i = 0; i < 200; ++i) {
      Address a = randomAddress();
      ASSERT_EQ(table.find(a), longestOf(prefixes, a)) << a.toString();
    }
  }
}

}  // namespace
}  // namespace braid::prefix_test
