#include "inet/flow_key.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/unit/inet/packets.h"

namespace braid::flow_key_test {
namespace {

using test::addr;

FlowKey key(const char* src, uint16_t sport, const char* dst, uint16_t dport, uint8_t protocol) {
  return {addr(src).family, protocol, sport, dport, addr(src).bytes, addr(dst).bytes};
}

const FlowKey kWeb = key("10.0.0.1", 443, "10.0.0.2", 5000, ip::kTcp);
const FlowKey kDns = key("2001:db8::1", 53, "2001:db8::2", 4000, ip::kUdp);

TEST(FlowKeyTest, PrintsItself) {
  EXPECT_EQ(kWeb.toString(), "tcp 10.0.0.1:443 > 10.0.0.2:5000");
  EXPECT_EQ(kDns.toString(), "udp [2001:db8::1]:53 > [2001:db8::2]:4000");
  EXPECT_EQ(key("10.0.0.1", 0, "10.0.0.2", 0, ip::kIcmp).toString(), "icmp 10.0.0.1 > 10.0.0.2");
  EXPECT_EQ(key("::1", 0, "::2", 0, 47).toString(), "47 ::1 > ::2");
}

TEST(FlowKeyTest, ReversedSwapsBothEnds) {
  EXPECT_EQ(kWeb.reversed(), key("10.0.0.2", 5000, "10.0.0.1", 443, ip::kTcp));
  EXPECT_EQ(kWeb.reversed().reversed(), kWeb);
  EXPECT_NE(kWeb.reversed(), kWeb);
}

TEST(FlowKeyHashTest, IsSipHash13) {
  // By `openssl mac -macopt c-rounds:1 -macopt d-rounds:3 -macopt size:8 SIPHASH` with the key 00
  // 01 .. 0f.
  FlowKeyHash hash(0x0706050403020100, 0x0f0e0d0c0b0a0908);
  EXPECT_EQ(hash(kWeb), 0x2983904b40527e5bu);
  EXPECT_EQ(hash(kDns), 0x13dd0ffbef9e1a18u);
}

TEST(FlowKeyHashTest, EveryFieldAndTheSeedCount) {
  FlowKeyHash hash(1, 2);
  std::vector<FlowKey> variants(8, kDns);
  variants[1].protocol = ip::kTcp;
  variants[2].sport ^= 1;
  variants[3].dport ^= 1;
  variants[4].src[0] ^= 1;
  variants[5].src[15] ^= 1;
  variants[6].dst[0] ^= 1;
  variants[7].dst[15] ^= 1;
  std::set<size_t> seen;
  for (const FlowKey& k : variants) {
    EXPECT_EQ(k == kDns, &k == &variants[0]);
    seen.insert(hash(k));
  }
  EXPECT_EQ(seen.size(), variants.size());
  EXPECT_FALSE(seen.count(FlowKeyHash(1, 3)(kDns)));
  EXPECT_FALSE(seen.count(FlowKeyHash(2, 2)(kDns)));
  EXPECT_EQ(hash(kDns), FlowKeyHash(1, 2)(kDns));
}

TEST(FlowKeyHashTest, NeighbouringPortsSpread) {
  FlowKeyHash hash(3, 4);
  std::vector<int> buckets(64);
  FlowKey k = kWeb;
  for (int i = 0; i < 6400; ++i) {
    k.sport = static_cast<uint16_t>(1024 + i);
    ++buckets[hash(k) % buckets.size()];
  }
  for (int n : buckets) {  // mean 100, deviation 10
    EXPECT_GT(n, 50);
    EXPECT_LT(n, 150);
  }
}

}  // namespace
}  // namespace braid::flow_key_test
