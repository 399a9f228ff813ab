#include "web/site.h"

#include <gtest/gtest.h>

namespace braid::access_test {
namespace {

const std::string kToken = "correct-horse-battery";

TEST(AccessTest, OnlyAddressesAndOwnNamesAreThisHost) {
  Access access({"router.lan"});
  for (const char* own : {"127.0.0.1", "127.0.0.1:9380", "[::1]", "[::1]:9380", "localhost",
                          "LOCALHOST:1", "192.0.2.7:9380", "router.lan", "Router.LAN:443"})
    EXPECT_TRUE(access.isOwnHost(own)) << own;
  for (const char* other :
       {"", "evil.example", "evil.example:9380", "localhost.evil.example",
        "router.lan.evil.example", "127.0.0.1.evil.example", "[::1", "::1", "127.0.0.1:x",
        "127.0.0.1:1234567", "[::1]x", "127.0.0.1 ", "a@127.0.0.1", ":80"}) {
    EXPECT_FALSE(access.isOwnHost(other)) << other;
  }
}

TEST(AccessTest, WithoutATokenEverybodyIsLetIn) {
  EXPECT_TRUE(Access().isLetIn(std::nullopt));
  EXPECT_TRUE(Access().isLetIn("Bearer anything"));
}

TEST(AccessTest, TheTokenCountsAsBearerAndAsPassword) {
  Access access({}, kToken);
  EXPECT_TRUE(access.isLetIn("Bearer " + kToken));
  EXPECT_TRUE(access.isLetIn("bearer " + kToken));
  EXPECT_TRUE(access.isLetIn("Basic YTpjb3JyZWN0LWhvcnNlLWJhdHRlcnk="));  // a:...
  EXPECT_TRUE(access.isLetIn("Basic OmNvcnJlY3QtaG9yc2UtYmF0dGVyeQ=="));  // nobody's
}

TEST(AccessTest, NothingElseDoes) {
  Access access({}, kToken);
  EXPECT_FALSE(access.isLetIn(std::nullopt));
  for (const std::string& wrong :
       {std::string(), kToken, std::string("Bearer"), std::string("Bearer "),
        std::string("Bearer x"), "Bearer " + kToken + " ", "Bearer " + kToken.substr(1),
        "Digest " + kToken, std::string("Basic "), std::string("Basic x"),
        std::string("Basic ===="), std::string("Basic YWJj"), std::string("Basic YTpi"),
        "Basic " + std::string(2000, 'A')})
    EXPECT_FALSE(access.isLetIn(wrong)) << wrong;
}

}  // namespace
}  // namespace braid::access_test
