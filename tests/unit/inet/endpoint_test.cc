#include "inet/addresses.h"

#include <gtest/gtest.h>

namespace braid::endpoint_test {
namespace {

TEST(AddressTest, ParsesAndPrintsBothFamilies) {
  auto four = Address::parse("192.0.2.1");
  ASSERT_TRUE(four);
  EXPECT_TRUE(four->isV4());
  EXPECT_EQ(four->bits(), 32u);
  EXPECT_EQ(four->view().size(), 4u);
  EXPECT_EQ(four->bytes, (std::array<uint8_t, 16>{192, 0, 2, 1}));
  EXPECT_EQ(four->toString(), "192.0.2.1");

  auto six = Address::parse("2001:0DB8:0:0::1");
  ASSERT_TRUE(six);
  EXPECT_TRUE(six->isV6());
  EXPECT_EQ(six->bits(), 128u);
  EXPECT_EQ(six->view().size(), 16u);
  EXPECT_EQ(six->toString(), "2001:db8::1");
}

TEST(AddressTest, FromBytesEqualsFromText) {
  const uint8_t four[] = {10, 1, 2, 3};
  EXPECT_EQ(Address::v4(four), Address::parse("10.1.2.3"));
  const uint8_t six[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  EXPECT_EQ(Address::v6(six), Address::parse("fe80::9"));
}

TEST(AddressTest, RefusesWhatIsNoAddress) {
  for (std::string_view text : {"", "1", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.4 ", " 1.2.3.4",
                                "01.2.3.4", "::1::", "fe80::1%eth0", "[::1]", "localhost",
                                "1111:2222:3333:4444:5555:6666:7777:8888:9999",
                                "0000:0000:0000:0000:0000:0000:255.255.255.2550000000000"}) {
    EXPECT_FALSE(Address::parse(text)) << text;
  }
  EXPECT_FALSE(Address::parse(std::string_view("1.2.3.4\0x", 9)));
}

TEST(AddressTest, LongestTextIsTaken) {
  EXPECT_TRUE(Address::parse("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"));
}

TEST(AddressTest, NoAddressIsNamed) {
  EXPECT_EQ(Address{}.toString(), "none");
  EXPECT_EQ(Address{}.bits(), 0u);
  EXPECT_TRUE(Address{}.view().empty());
}

TEST(AddressTest, FamiliesNeverEqual) {
  EXPECT_NE(Address::parse("0.0.0.0"), Address::parse("::"));
}

TEST(EndpointTest, ParsesAndPrintsBothFamilies) {
  for (const char* text : {"192.0.2.1:443", "[2001:db8::1]:443", "0.0.0.0:0", "[::]:65535"}) {
    auto endpoint = Endpoint::parse(text);
    ASSERT_TRUE(endpoint) << text;
    EXPECT_EQ(endpoint->toString(), text);
  }
  EXPECT_EQ(Endpoint::parse("192.0.2.1:443")->port, 443);
}

TEST(EndpointTest, RefusesWhatIsNoEndpoint) {
  for (std::string_view text :
       {"", ":", "192.0.2.1", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:-1", "192.0.2.1:+1",
        "192.0.2.1:1x", "192.0.2.1: 1", "192.0.2.1:000001", "[192.0.2.1]:1", "2001:db8::1",
        "2001:db8::1:443", "[2001:db8::1]", "[2001:db8::1]443", "[2001:db8::1:443", "[]:1", "[:1",
        ":443"}) {
    EXPECT_FALSE(Endpoint::parse(text)) << text;
  }
}

}  // namespace
}  // namespace braid::endpoint_test
