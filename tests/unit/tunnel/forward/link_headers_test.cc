#include "tunnel/forward/shim_adapter.h"

#include <gtest/gtest.h>

namespace braid::link_headers_test {
namespace {

using Header = LinkHeaders::Header;

Address host(uint32_t number) {
  std::array<uint8_t, 4> bytes{10, static_cast<uint8_t>(number >> 16),
                               static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
  return Address::v4(bytes);
}

/// From a host to a next hop.
Header header(uint8_t from, uint8_t to) {
  return {2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x08, 0x00};
}

struct LinkHeadersTest : testing::Test {
  LinkHeaders links{FlowKeyHash(1, 2)};
};

TEST_F(LinkHeadersTest, TheHeaderOfAPairIsWhatItsHostWroteLast) {
  EXPECT_FALSE(links.toRemote(host(1), host(2)));
  links.note(host(1), host(2), header(1, 2));
  EXPECT_EQ(links.toRemote(host(1), host(2)), header(1, 2));
  EXPECT_FALSE(links.toRemote(host(2), host(1))) << "that host is not on this side";
  EXPECT_FALSE(links.toRemote(host(1), host(3)));
  links.note(host(1), host(2), header(1, 9));
  EXPECT_EQ(links.toRemote(host(1), host(2)), header(1, 9)) << "another router";
}

TEST_F(LinkHeadersTest, TheAnswerGoesBackToTheHostFromWhereItSpoke) {
  links.note(host(1), host(2), header(1, 2));
  EXPECT_EQ(links.toLocal(host(1), host(2)), header(2, 1));
}

TEST_F(LinkHeadersTest, ManyPairsPushOutQuietOnesAndNotThoseInUse) {
  links.note(host(0), host(1), header(7, 8));
  links.note(host(0), host(2), header(7, 9));
  for (uint32_t i = 10; i < 100'000; ++i) {
    links.note(host(i), host(1), header(1, 2));
    links.note(host(0), host(1), header(7, 8));
  }
  EXPECT_EQ(links.toRemote(host(0), host(1)), header(7, 8));
  EXPECT_FALSE(links.toRemote(host(0), host(2)));
}

}  // namespace
}  // namespace braid::link_headers_test
