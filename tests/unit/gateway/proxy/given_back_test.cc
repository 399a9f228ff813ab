// SYNs that were given back to the host's listener.

#include "gateway/proxy/given_back.h"

#include <gtest/gtest.h>

namespace braid::given_back_test {
namespace {

using Copy = GivenBack::Copy;

class GivenBackTest : public testing::Test {
 protected:
  static Beginning syn(uint32_t number = 7, uint16_t port = 50'000) {
    return {{{*Address::parse("10.1.0.7"), port}, *Endpoint::parse("10.2.0.9:443")}, number};
  }
  Copy look(uint32_t number = 7) { return given_.look(syn(number), now_); }
  void wait(Duration time) { now_ += time; }

  GivenBack given_;
  Time now_{1h};
};

TEST_F(GivenBackTest, OthersAreNew) {
  EXPECT_EQ(look(), Copy::kNone);
  given_.add(syn(), now_);
  EXPECT_EQ(look(8), Copy::kNone) << "the client begins again";
  EXPECT_EQ(given_.look(syn(7, 50'001), now_), Copy::kNone);
}

TEST_F(GivenBackTest, AClientRepeatsItsSyn) {
  given_.add(syn(), now_);
  wait(GivenBack::kEcho);
  EXPECT_EQ(look(), Copy::kRepeated);
  given_.add(syn(), now_);
  wait(GivenBack::kEcho);
  EXPECT_EQ(look(), Copy::kRepeated) << "the listener's answer was lost again";
}

TEST_F(GivenBackTest, AnEchoIsUselessAndTellsThatTheHostRoutesItToTheDevice) {
  given_.add(syn(), now_);
  for (int i = 0; i < 3; ++i) {
    wait(1ms);
    EXPECT_EQ(look(), Copy::kUseless);
  }
  wait(GivenBack::kEcho);
  EXPECT_EQ(look(), Copy::kAstray);
  EXPECT_EQ(look(), Copy::kAstray) << "and it stays so";
  given_.add(syn(8), now_);
  wait(GivenBack::kEcho);
  EXPECT_EQ(look(8), Copy::kRepeated) << "another connection has a chance of its own";
}

TEST_F(GivenBackTest, OfAnAcceptedConnectionACopyIsUselessHoweverLate) {
  given_.add(syn(), now_);
  given_.join(syn().ends);
  for (Duration time : {1ms, 1000ms, 58'000ms}) {
    wait(time);
    EXPECT_EQ(look(), Copy::kUseless);
  }
  EXPECT_EQ(look(8), Copy::kNone) << "the client begins again";
}

// A host may have had a new start, and begin with the same numbers again.
TEST_F(GivenBackTest, AfterAMinuteItIsAnotherConnections) {
  given_.add(syn(), now_);
  given_.join(syn().ends);
  wait(GivenBack::kKnown);
  EXPECT_EQ(look(), Copy::kNone);
  given_.add(syn(), now_);
  wait(GivenBack::kEcho);
  EXPECT_EQ(look(), Copy::kRepeated) << "it is not accepted yet";
}

TEST_F(GivenBackTest, TheOldestAreForgotten) {
  constexpr auto kMost = static_cast<uint16_t>(GivenBack::kMost);
  for (uint16_t port = 1; port <= kMost + 1; ++port) {
    given_.add(syn(7, port), now_);
    given_.join(syn(7, port).ends);
    wait(1ms);
  }
  EXPECT_EQ(given_.size(), size_t{kMost});
  EXPECT_EQ(given_.look(syn(7, 1), now_), Copy::kNone);
  EXPECT_EQ(given_.look(syn(7, 2), now_), Copy::kUseless);
  wait(GivenBack::kKnown);
  given_.add(syn(), now_);
  EXPECT_EQ(given_.size(), 1u);
}

TEST_F(GivenBackTest, OneThatIsGivenBackAgainIsNotForgottenWithItsFirstTime) {
  given_.add(syn(), now_);
  wait(GivenBack::kKnown / 2);
  given_.add(syn(), now_);
  wait(GivenBack::kKnown / 2);
  given_.add(syn(7, 50'001), now_);
  EXPECT_EQ(given_.size(), 2u);
  EXPECT_EQ(look(), Copy::kRepeated);
}

}  // namespace
}  // namespace braid::given_back_test
