#include "tunnel/responders.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/unit/tunnel/puppets.h"

namespace braid::responders_test {
namespace {

using test::PuppetProvider;

struct RespondersTest : testing::Test {
  PacketPool pool{2048, 256};
  PuppetProvider handshakes;
  Responders responders{pool, handshakes};
  Time now = Time{} + 1s;

  static Route route(const std::string& host, uint16_t port = 1000) {
    return {1, {}, {*Address::parse(host), port}};
  }
  std::optional<Drop> hello(const Route& from) {
    std::array<uint8_t, 60> bytes{22, 0xfe, 0xfd};
    bytes[13] = 1;
    return responders.onDatagram(from, bytes, now);
  }
  std::optional<Drop> later(const Route& from) {
    std::array<uint8_t, 60> bytes{22, 0xfe, 0xfd};
    bytes[13] = 16;
    return responders.onDatagram(from, bytes, now);
  }
  test::PuppetHandshake& last() { return *handshakes.made.back(); }
  std::vector<Route> sent() {
    std::vector<Route> routes;
    for (Datagram d; responders.pollDatagram(d);) routes.push_back(d.route);
    return routes;
  }
  std::vector<Responders::Outcome> outcomes() {
    std::vector<Responders::Outcome> all;
    for (Responders::Outcome o; responders.pollOutcome(o);) all.push_back(std::move(o));
    return all;
  }
};

TEST_F(RespondersTest, AStrangerWithoutACookieCostsNoState) {
  handshakes.verdict = PuppetProvider::Verdict::kCookie;
  EXPECT_EQ(hello(route("192.0.2.1")), std::nullopt);
  EXPECT_EQ(responders.size(), 0u);
  EXPECT_EQ(sent(), std::vector<Route>{route("192.0.2.1")});
}

TEST_F(RespondersTest, AReplyIsNeverLongerThanTheQuestion) {
  handshakes.verdict = PuppetProvider::Verdict::kLongReply;
  EXPECT_EQ(hello(route("192.0.2.1")), Drop::kHandshakeLimit);
  EXPECT_TRUE(sent().empty());
}

TEST_F(RespondersTest, WhatIsNoHelloOfAStrangerIsGarbage) {
  EXPECT_EQ(later(route("192.0.2.1")), Drop::kHandshakeGarbage);
  handshakes.verdict = PuppetProvider::Verdict::kRefuse;
  EXPECT_EQ(hello(route("192.0.2.1")), Drop::kHandshakeGarbage);
}

TEST_F(RespondersTest, LaterDatagramsGoToTheHandshakeOfTheirRoute) {
  hello(route("192.0.2.1"));
  test::PuppetHandshake& first = last();
  hello(route("192.0.2.2"));
  later(route("192.0.2.1"));
  EXPECT_EQ(first.datagrams, 1);
  EXPECT_EQ(last().datagrams, 0);
}

TEST_F(RespondersTest, AHelloIsADuplicateAtFirstAndANewStartLater) {
  hello(route("192.0.2.1"));
  now += Responders::kStale;
  hello(route("192.0.2.1"));
  EXPECT_EQ(handshakes.made.size(), 1u);
  EXPECT_EQ(last().datagrams, 1) << "as a retransmission";
  now += 1ms;
  hello(route("192.0.2.1"));
  EXPECT_EQ(handshakes.made.size(), 2u);
  EXPECT_EQ(responders.size(), 1u);
}

TEST_F(RespondersTest, AfterAFinishedHandshakeANewStartIsBelievedSooner) {
  hello(route("192.0.2.1"));
  last().now = Handshake::State::kDone;
  later(route("192.0.2.1"));
  now += Responders::kStaleDone + 1ms;
  hello(route("192.0.2.1"));
  EXPECT_EQ(handshakes.made.size(), 2u);
}

TEST_F(RespondersTest, ADoneHandshakeIsReportedOnceAndAnswersOn) {
  hello(route("192.0.2.1"));
  last().now = Handshake::State::kDone;
  last().kept.sessionId = 77;
  later(route("192.0.2.1"));
  std::vector<Responders::Outcome> all = outcomes();
  ASSERT_EQ(all.size(), 1u);
  ASSERT_TRUE(all[0].secrets);
  EXPECT_EQ(all[0].secrets->sessionId, 77u);
  last().toSend = 1;
  later(route("192.0.2.1"));
  EXPECT_TRUE(outcomes().empty());
  EXPECT_EQ(sent().size(), 1u);
  now += kHandshakeTimeout + 1ms;
  responders.onTimer(now);
  EXPECT_EQ(responders.size(), 0u);
  EXPECT_TRUE(outcomes().empty()) << "it did not fail";
}

TEST_F(RespondersTest, AFailedHandshakeSendsItsAlertAndIsForgotten) {
  hello(route("192.0.2.1"));
  last().now = Handshake::State::kFailed;
  last().toSend = 1;
  later(route("192.0.2.1"));
  EXPECT_EQ(responders.size(), 0u);
  EXPECT_EQ(sent(), std::vector<Route>{route("192.0.2.1")});
  std::vector<Responders::Outcome> all = outcomes();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].secrets);
  EXPECT_EQ(all[0].error, "it failed");
}

TEST_F(RespondersTest, TheDeadlineIsTheFirstTimerOrTheEnd) {
  EXPECT_EQ(responders.nextDeadline(), kNever);
  hello(route("192.0.2.1"));
  EXPECT_GT(responders.nextDeadline(), now + kHandshakeTimeout);
  EXPECT_LE(responders.nextDeadline(), now + kHandshakeTimeout + 1ms);
  last().timer = now + 400ms;
  later(route("192.0.2.1"));
  EXPECT_EQ(responders.nextDeadline(), now + 400ms);
  now += 400ms;
  responders.onTimer(now);
  EXPECT_EQ(last().timeouts, 1);
  now = responders.nextDeadline();
  responders.onTimer(now);
  EXPECT_EQ(responders.size(), 0u);
}

TEST_F(RespondersTest, WhenFullTheOldestFinishedOneMakesRoom) {
  for (size_t i = 0; i < Responders::kMaxResponders; ++i) {
    ASSERT_EQ(hello(route("192.0.2." + std::to_string(i % 200), static_cast<uint16_t>(i))), std::nullopt);
    last().now = Handshake::State::kDone;
    now += 1ms;
    later(route("192.0.2." + std::to_string(i % 200), static_cast<uint16_t>(i)));
  }
  EXPECT_EQ(responders.size(), Responders::kMaxResponders);
  EXPECT_EQ(hello(route("198.51.100.1")), std::nullopt);
  EXPECT_EQ(responders.size(), Responders::kMaxResponders);
  EXPECT_EQ(later(route("192.0.2.0", 0)), Drop::kHandshakeGarbage) << "the first one is forgotten";
}

}  // namespace
}  // namespace braid::responders_test
