#include "inet/addresses.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/unit/inet/packets.h"

namespace braid::special_addresses_test {
namespace {

using test::addr;

constexpr SpecialKind kNobody = SpecialKind::kNobody, kLink = SpecialKind::kLink,
                      kCloud = SpecialKind::kCloud;

std::optional<SpecialRange> rangeOf(const char* address) {
  static const SpecialAddresses kTable;
  return kTable.find(addr(address));
}

/// A range by its first and last address, and its neighbours, which are ordinary addresses; "": no
/// neighbour.
struct Row {
  const char *before, *first, *last, *behind;
  SpecialRange range;
};

void check(const Row& row) {
  EXPECT_EQ(rangeOf(row.first), row.range) << row.first;
  EXPECT_EQ(rangeOf(row.last), row.range) << row.last;
  for (const char* beside : {row.before, row.behind}) {
    if (*beside) {
      EXPECT_EQ(rangeOf(beside), std::nullopt) << beside;
    }
  }
}

TEST(SpecialAddressesTest, OfTheRegistries) {
  for (const Row& row : {
           Row{"", "0.0.0.0", "0.255.255.255", "1.0.0.0", {kNobody, 8}},
           Row{"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", {kNobody, 8}},
           Row{"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", {kLink, 16}},
           Row{"223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", {kLink, 4}},
           Row{"255.255.255.254", "255.255.255.255", "255.255.255.255", "", {kLink, 32}},
           Row{"", "::", "::ffff:ffff", "::1:0:0", {kNobody, 96}},
           Row{"::fffe:ffff:ffff", "::ffff:0:0", "::ffff:ffff:ffff", "::1:0:0:0", {kNobody, 96}},
           Row{"fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
               "fe80::",
               "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
               "fec0::",
               {kLink, 10}},
           Row{"feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
               "ff00::",
               "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
               "",
               {kLink, 8}},
       }) {
    check(row);
  }
  EXPECT_EQ(rangeOf("::1"), (SpecialRange{kNobody, 96}));
}

TEST(SpecialAddressesTest, OfClouds) {
  for (const Row& row : {
           Row{"100.100.100.199",
               "100.100.100.200",
               "100.100.100.200",
               "100.100.100.201",
               {kCloud, 32}},
           Row{"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17", {kCloud, 32}},
           Row{"192.0.0.191", "192.0.0.192", "192.0.0.192", "192.0.0.193", {kCloud, 32}},
           Row{"fd00:ec1:ffff:ffff:ffff:ffff:ffff:ffff",
               "fd00:ec2::",
               "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff",
               "fd00:ec3::",
               {kCloud, 32}},
           Row{"fd20:ce::253", "fd20:ce::254", "fd20:ce::254", "fd20:ce::255", {kCloud, 128}},
           Row{"fd00:c1::a9fe:a9fd",
               "fd00:c1::a9fe:a9fe",
               "fd00:c1::a9fe:a9fe",
               "fd00:c1::a9fe:a9ff",
               {kCloud, 128}},
           Row{"fd00:42::41", "fd00:42::42", "fd00:42::42", "fd00:42::43", {kCloud, 128}},
           Row{"fd00:a9fe:a9fe::",
               "fd00:a9fe:a9fe::1",
               "fd00:a9fe:a9fe::1",
               "fd00:a9fe:a9fe::2",
               {kCloud, 128}},
           Row{"fd00:100::100:1ff",
               "fd00:100::100:200",
               "fd00:100::100:200",
               "fd00:100::100:201",
               {kCloud, 128}},
       }) {
    check(row);
  }
}

TEST(SpecialAddressesTest, OfCloudsWithinALink) {
  for (const char* address : {"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23",
                              "169.254.10.10", "169.254.42.42"}) {
    EXPECT_EQ(rangeOf(address), (SpecialRange{kCloud, 32})) << address;
    for (int step : {-1, 1}) {
      Address beside = addr(address);
      beside.bytes[3] = static_cast<uint8_t>(beside.bytes[3] + step);
      EXPECT_EQ(SpecialAddresses().find(beside), (SpecialRange{kLink, 16})) << beside.toString();
    }
  }
  EXPECT_EQ(rangeOf("fe80::a9fe:a9fe"), (SpecialRange{kCloud, 128}));
  EXPECT_EQ(rangeOf("fe80::a9fe:a9ff"), (SpecialRange{kLink, 10}));
}

TEST(SpecialAddressesTest, AnIpv4AddressInsideIsLookedAt) {
  const std::optional<SpecialRange> kInside = SpecialRange{kNobody, 128};
  for (const char* special : {"0.0.0.0", "127.0.0.1", "169.254.1.1", "169.254.169.254",
                              "168.63.129.16", "224.0.0.1", "255.255.255.255"}) {
    for (const char* range : {"64:ff9b::", "::ffff:0:"}) {
      std::string address = range + std::string(special);
      EXPECT_EQ(rangeOf(address.c_str()), kInside) << address;
    }
  }
  for (const char* special : {"127.0.0.1", "169.254.1.1", "169.254.169.254", "168.63.129.16"}) {
    for (const char* range : {"64:ff9b:1::", "64:ff9b:1:abcd::"}) {
      std::string address = range + std::string(special);
      EXPECT_EQ(rangeOf(address.c_str()), kInside) << address;
    }
  }
  for (const char* address :
       {"2002:7f00:1::1", "2002:a9fe:a9fe::", "2002:a83f:8110:5::7", "2002:e000:1::1", "2002::1"})
    EXPECT_EQ(rangeOf(address), kInside) << address;
  // Addresses behind a NAT64 prefix of 48, 56 and 64 bits, with any bits behind the embedded
  // address.
  for (const char* address :
       {"64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9fe:a9:fe00:1:2", "64:ff9b:1:a83f:81:1000::",
        "64:ff9b:1:1a9:fe:a9fe::", "64:ff9b:1:7f:0:1::", "64:ff9b:1:1:a9:fea9:fe00:0",
        "64:ff9b:1:1:64:6464:c800:0"})
    EXPECT_EQ(rangeOf(address), kInside) << address;
}

TEST(SpecialAddressesTest, OthersAreNot) {
  for (const char* address : {"10.0.0.1",
                              "192.168.1.1",
                              "100.64.0.1",
                              "192.0.2.1",
                              "203.0.113.1",
                              "8.8.8.8",
                              "240.0.0.1",
                              "fd00::1",
                              "2001:db8::1",
                              "2606:4700::1111",
                              "64:ff9b::8.8.8.8",
                              "64:ff9b::10.1.2.3",
                              "64:ff9b:1::8.8.8.8",
                              "64:ff9b:1:e000::8.8.8.8",
                              "64:ff9b:1:808:8:800::",
                              "64:ff9b:1:a7f:1:200::",
                              "64:ff9b:1:80a:7f:102::",
                              "64:ff9b:1:1:8:808:7f00:0",
                              "64:ff9b:1:7f00::8.8.8.8",
                              "64:ff9b:1:a9fe::8.8.8.8",
                              "64:ff9b:1:1:8:808:800:0",
                              "::ffff:0:8.8.8.8",
                              "2002:808:808::1",
                              "64:ff9b:0:1::169.254.169.254",
                              "64:ff9b:2::169.254.169.254",
                              "2003:7f00:1::1"})
    EXPECT_EQ(rangeOf(address), std::nullopt) << address;
  EXPECT_EQ(SpecialAddresses().find(Address{}), std::nullopt);
}

TEST(SpecialAddressesTest, ANetworkThatHoldsOneOrLiesInARangeOverlaps) {
  SpecialAddresses table;
  for (const char* network : {"100.100.100.200/32", "100.100.100.0/24", "100.64.0.0/10",
                              "169.254.7.0/24", "fd00:ec2:1::/48", "0.0.0.0/0"})
    EXPECT_TRUE(table.overlap(*Prefix::parse(network))) << network;
  for (const char* network : {"10.0.0.0/8", "100.64.0.0/16", "192.168.0.0/16", "fd12:3456::/48"})
    EXPECT_FALSE(table.overlap(*Prefix::parse(network))) << network;
}

}  // namespace
}  // namespace braid::special_addresses_test
