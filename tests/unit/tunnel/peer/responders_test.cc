#include "tunnel/peer/accepting.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/tunnel/peer/puppets.h"

namespace braid::responders_test {
namespace {

using test::Knocker;
using test::PuppetProvider;
using Bytes = std::vector<uint8_t>;

struct RespondersTest : testing::Test {
  PacketPool pool{2048, 512};
  PuppetProvider handshakes;
  SecretRandom random{knownKey(1)};
  HandshakeServer responders{pool, handshakes, random};
  Time now = Time{} + 1s;
  std::map<Route, Knocker> knockers;

  static Route route(const std::string& host, uint16_t port = 1000) {
    return {1, {}, {*Address::parse(host), port}};
  }
  Knocker& at(const Route& from) {
    auto [it, isNew] = knockers.try_emplace(from, handshakes.pin, knockers.size() + 1);
    if (isNew) store64(it->second.header.id.data(), knockers.size());
    return it->second;
  }
  std::optional<Drop> put(const Route& from, Bytes bytes) {
    return responders.onDatagram(from, bytes, now);
  }
  /// Sends the first datagram of a handshake, with the stored cookie if there is one.
  std::optional<Drop> hello(const Route& from) {
    return put(from, at(from).datagram(Knocker::hello()));
  }
  std::optional<Drop> later(const Route& from) {
    return put(from, at(from).datagram(Knocker::record(16)));
  }
  /// Asks for a cookie and begins a handshake with it.
  std::optional<Drop> begin(const Route& from) {
    if (auto drop = hello(from)) return drop;
    std::vector<Datagram> answers = sent();
    EXPECT_EQ(answers.size(), 1u);
    for (Datagram& answer : answers) EXPECT_TRUE(at(from).takeCookie(answer.bytes.span()));
    return hello(from);
  }
  /// Begins another handshake of the same initiator, which still has its cookie.
  std::optional<Drop> beginAnew(const Route& from) {
    ++at(from).header.id[7];
    return hello(from);
  }
  /// Finishes a handshake with the key of that pin; false when the responder refuses it.
  bool finish(const Route& from, const Pin& peer) {
    if (begin(from)) return false;
    last().kept.peer = peer;
    last().now = Handshake::State::kDone;
    later(from);
    std::vector<HandshakeServer::Outcome> all = outcomes();
    return !all.empty() && all.back().secrets.has_value();
  }
  test::PuppetHandshake& last() { return *handshakes.made.back(); }
  void fillAllPlaces() {
    for (size_t i = 0; i < HandshakeServer::kMaxRunning; ++i) {
      ASSERT_EQ(begin(route("10." + std::to_string(i) + ".0.1")), std::nullopt) << i;
      now += 10ms;
    }
    ASSERT_EQ(responders.size(), HandshakeServer::kMaxRunning);
  }
  std::vector<Datagram> sent() {
    std::vector<Datagram> all;
    for (Datagram d; responders.pollDatagram(d);) all.push_back(std::move(d));
    return all;
  }
  std::vector<HandshakeServer::Outcome> outcomes() {
    std::vector<HandshakeServer::Outcome> all;
    for (HandshakeServer::Outcome o; responders.pollOutcome(o);) all.push_back(std::move(o));
    return all;
  }
};

TEST_F(RespondersTest, WhoDoesNotKnowThePinGetsNothing) {
  Knocker stranger(Pin{8});
  EXPECT_EQ(put(route("192.0.2.1"), stranger.datagram(Knocker::hello())), Drop::kHandshakeSeal);
  Bytes good = at(route("192.0.2.1")).datagram(Knocker::hello());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_EQ(put(route("192.0.2.1"), bad),
              bit < 8 ? Drop::kHandshakeGarbage : Drop::kHandshakeSeal)
        << bit;
  }
  for (size_t size = 1; size < good.size(); ++size)
    EXPECT_EQ(
        put(route("192.0.2.1"), Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size))),
        Drop::kHandshakeSeal);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(responders.size(), 0u);
}

TEST_F(RespondersTest, WhatWasOverheardIsNotAnsweredAgain) {
  RecordProperty("rule", "handshake.nonce");
  Bytes overheard = at(route("192.0.2.1")).datagram(Knocker::hello());
  EXPECT_EQ(put(route("192.0.2.1"), overheard), std::nullopt);
  EXPECT_EQ(sent().size(), 1u);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(put(route("203.0.113.5", static_cast<uint16_t>(i)), overheard),
              Drop::kHandshakeReplay);
  EXPECT_TRUE(sent().empty());
}

TEST_F(RespondersTest, AHelloWithoutACookieCostsNoStateAndGetsAShorterAnswer) {
  Bytes question = at(route("192.0.2.1")).datagram(Bytes(1));
  EXPECT_EQ(put(route("192.0.2.1"), question), std::nullopt);
  std::vector<Datagram> answers = sent();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].route, route("192.0.2.1"));
  EXPECT_LE(answers[0].bytes.size(), question.size());
  EXPECT_EQ(responders.size(), 0u);
  EXPECT_TRUE(handshakes.made.empty());
}

TEST_F(RespondersTest, ACookieCountsOnlyFromItsAddressAndPort) {
  RecordProperty("rule", "handshake.cookie");
  ASSERT_EQ(begin(route("192.0.2.1")), std::nullopt);
  EXPECT_EQ(handshakes.made.size(), 1u);
  for (const Route& other : {route("192.0.2.2"), route("192.0.2.1", 1001)}) {
    at(other).header = at(route("192.0.2.1")).header;
    EXPECT_EQ(hello(other), std::nullopt);
    EXPECT_EQ(sent().size(), 1u) << "asked for a cookie of his own";
  }
  EXPECT_EQ(handshakes.made.size(), 1u);
}

TEST_F(RespondersTest, ACookieLivesForOneToTwoMinutes) {
  Route from = route("192.0.2.1");
  ASSERT_EQ(begin(from), std::nullopt);
  now += 60s;
  hello(route("192.0.2.9"));
  sent();
  now += 59s;
  EXPECT_EQ(beginAnew(from), std::nullopt);
  EXPECT_EQ(handshakes.made.size(), 2u);
  now += 2s;
  hello(route("192.0.2.8"));
  sent();
  EXPECT_EQ(beginAnew(from), std::nullopt);
  EXPECT_EQ(handshakes.made.size(), 2u) << "asked again";
}

TEST_F(RespondersTest, ACookieDoesNotOutliveAQuietTime) {
  Route from = route("192.0.2.1");
  ASSERT_EQ(begin(from), std::nullopt);
  now += 1h;
  EXPECT_EQ(beginAnew(from), std::nullopt);
  EXPECT_EQ(handshakes.made.size(), 1u);
}

TEST_F(RespondersTest, ALaterFlightOfAnUnknownHandshakeIsGarbage) {
  Route from = route("192.0.2.1");
  begin(from);
  ++at(from).header.id[0];
  EXPECT_EQ(later(from), Drop::kHandshakeGarbage);
}

TEST_F(RespondersTest, LaterDatagramsGoToTheHandshakeOfTheirRoute) {
  begin(route("192.0.2.1"));
  test::PuppetHandshake& first = last();
  begin(route("192.0.2.2"));
  later(route("192.0.2.1"));
  EXPECT_EQ(first.datagrams, 2);
  EXPECT_EQ(last().datagrams, 1);
}

TEST_F(RespondersTest, ANewHandshakeTakesThePlaceOfTheOneBeforeAtOnce) {
  Route from = route("192.0.2.1");
  begin(from);
  hello(from);
  EXPECT_EQ(last().datagrams, 2) << "the same handshake: a retransmission";
  beginAnew(from);
  EXPECT_EQ(handshakes.made.size(), 2u);
  EXPECT_EQ(responders.size(), 1u);
}

TEST_F(RespondersTest, ADoneHandshakeIsReportedOnceAndAnswersOn) {
  Route from = route("192.0.2.1");
  begin(from);
  last().now = Handshake::State::kDone;
  last().kept.sessionId = 77;
  last().kept.initiatorSecret.fill(1), last().kept.responderSecret.fill(2);
  SessionSecrets given = last().kept;
  later(from);
  std::vector<HandshakeServer::Outcome> all = outcomes();
  ASSERT_EQ(all.size(), 1u);
  ASSERT_TRUE(all[0].secrets);
  EXPECT_EQ(all[0].secrets->sessionId, 77u);
  EXPECT_EQ(all[0].secrets->initiatorSecret, given.initiatorSecret);
  EXPECT_EQ(all[0].secrets->responderSecret, given.responderSecret);
  EXPECT_EQ(last().kept.initiatorSecret, decltype(given.initiatorSecret){})
      << "what remembers it has no secrets";
  EXPECT_EQ(last().kept.responderSecret, decltype(given.responderSecret){});
  last().toSend = 1;
  later(from);
  EXPECT_TRUE(outcomes().empty());
  std::vector<Datagram> answers = sent();
  ASSERT_EQ(answers.size(), 1u);
  auto opened = at(from).open(answers[0].bytes.span());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->header.kind, HandshakeKind::kResponder);
  EXPECT_EQ(opened->header.id, at(from).header.id);
  EXPECT_EQ(opened->body.size(), 40u);
  now += kHandshakeTimeout + 1ms;
  responders.onTimer(now);
  EXPECT_EQ(responders.size(), 0u);
  EXPECT_TRUE(outcomes().empty()) << "it did not fail";
}

// On a path with a round trip of 4 s, the initiator repeats its last flight after 10 s, too.
TEST_F(RespondersTest, OneThatTookLongAnswersForLonger) {
  Route from = route("192.0.2.1");
  begin(from);
  now += 4s;
  last().now = Handshake::State::kDone;
  later(from);
  now += 20s;
  responders.onTimer(now);
  EXPECT_EQ(responders.size(), 1u);
  now += 60s;
  responders.onTimer(now);
  EXPECT_EQ(responders.size(), 0u);
}

TEST_F(RespondersTest, AFailedHandshakeSendsItsAlertAndIsForgotten) {
  Route from = route("192.0.2.1");
  begin(from);
  last().now = Handshake::State::kFailed;
  last().toSend = 1;
  later(from);
  EXPECT_EQ(responders.size(), 0u);
  EXPECT_EQ(sent().size(), 1u);
  std::vector<HandshakeServer::Outcome> all = outcomes();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].secrets);
  EXPECT_EQ(all[0].error, "it failed");
}

TEST_F(RespondersTest, AHandshakeThatWasForSomethingElseIsForgottenWithoutAWord) {
  Route from = route("192.0.2.1");
  ASSERT_EQ(begin(from), std::nullopt);
  last().now = Handshake::State::kClosed;
  EXPECT_EQ(later(from), std::nullopt);
  EXPECT_TRUE(outcomes().empty());
  EXPECT_EQ(responders.size(), 0u);
}

TEST_F(RespondersTest, TheDeadlineIsTheFirstTimerOrTheEnd) {
  Route from = route("192.0.2.1");
  EXPECT_EQ(responders.nextDeadline(), kNever);
  begin(from);
  EXPECT_GT(responders.nextDeadline(), now + kHandshakeTimeout);
  EXPECT_LE(responders.nextDeadline(), now + kHandshakeTimeout + 1ms);
  last().timer = now + 400ms;
  later(from);
  EXPECT_EQ(responders.nextDeadline(), now + 400ms);
  now += 400ms;
  responders.onTimer(now);
  EXPECT_EQ(last().timeouts, 1);
  now = responders.nextDeadline();
  responders.onTimer(now);
  EXPECT_EQ(responders.size(), 0u);
}

TEST_F(RespondersTest, AHandshakeTakesABoundedNumberOfDatagrams) {
  Route from = route("192.0.2.1");
  begin(from);
  for (uint32_t i = 1; i < HandshakeServer::kMaxDatagrams; ++i)
    EXPECT_EQ(later(from), std::nullopt);
  EXPECT_EQ(later(from), Drop::kHandshakeLimit);
}

// Begins as many handshakes as there are places, each from another host. None of them ends.
TEST_F(RespondersTest, WhenAllPlacesAreTakenWhoeverIsOnTheWayIsLeftAloneAndWhoTakesLongGoes) {
  fillAllPlaces();
  EXPECT_EQ(begin(route("198.51.100.1")), Drop::kHandshakeLimit);
  EXPECT_EQ(later(route("10.0.0.1")), std::nullopt);
  now += HandshakeServer::kGrace;
  EXPECT_EQ(hello(route("198.51.100.1")), std::nullopt);
  ASSERT_EQ(outcomes().size(), 1u) << "the operator is told";
  EXPECT_EQ(responders.size(), HandshakeServer::kMaxRunning);
  EXPECT_EQ(later(route("10.0.0.1")), Drop::kHandshakeGarbage) << "the oldest one made room";
  EXPECT_EQ(later(route("10.1.0.1")), std::nullopt);
}

TEST_F(RespondersTest, AHostWithManyDisplacesItselfFirst) {
  begin(route("198.51.100.1"));
  for (uint16_t port = 0; handshakes.made.size() < 600; ++port) {
    begin(route("192.0.2." + std::to_string(port % 16), port));
    now += 5ms;
  }
  EXPECT_EQ(responders.size(), HandshakeServer::kMaxRunning);
  EXPECT_EQ(later(route("198.51.100.1")), std::nullopt) << "still there";
}

// Strangers with thousands of addresses of one network, each of which has one handshake under way.
TEST_F(RespondersTest, ANetworkWithManyHostsDisplacesItselfFirst) {
  for (bool v6 : {false, true}) {
    auto host = [&](int i) {
      return route(v6 ? "2001:db8:" + std::to_string(i) + "::1"
                      : "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256));
    };
    int knocks = 0;
    auto flood = [&](Duration time) {
      for (Time end = now + time; now < end; now += 1ms) begin(host(knocks++));
    };
    flood(1s);
    ASSERT_EQ(responders.size(), HandshakeServer::kMaxRunning);
    for (int i = 0; i < 8; ++i) {
      Route newcomer = route("198.51.100." + std::to_string(i + 8 * v6));
      ASSERT_EQ(begin(newcomer), std::nullopt) << i;
      flood(500ms);
      ASSERT_EQ(later(newcomer), std::nullopt) << "still there";
    }
  }
}

TEST_F(RespondersTest, AKeyHasAsManyPlacesAsAHost) {
  auto host = [](size_t i, uint16_t port = 1) {
    return route("2001:db8:0:" + std::to_string(i % KnownHosts::kEach) + "::1", port);
  };
  for (size_t i = 0; i < KnownHosts::kEach; ++i) ASSERT_TRUE(finish(host(i), Pin{5}));
  now += kHandshakeTimeout + 1s;
  responders.onTimer(now);
  ASSERT_EQ(responders.size(), 0u);
  for (uint16_t i = 0; i < 200; ++i, now += 1ms)
    ASSERT_EQ(begin(host(i, static_cast<uint16_t>(1000 + i))), std::nullopt);
  EXPECT_EQ(responders.size(), HandshakeServer::kMaxRunningOfOne);
}

TEST_F(RespondersTest, AKeyThatFinishesTooManyHandshakesIsRefused) {
  size_t finished = 0;
  for (int i = 0; i < 200; ++i, now += 5ms)
    finished += finish(route("10." + std::to_string(i) + ".0.1"), Pin{5});
  const RateLimit key = HandshakeLimiter::kKeyFinishes;
  EXPECT_GE(finished, key.burst + 19u);
  EXPECT_LE(finished, key.burst + 21u);
  EXPECT_EQ(responders.size(), finished) << "what was refused is forgotten";
  EXPECT_TRUE(finish(route("198.51.100.1"), Pin{6}));
}

TEST_F(RespondersTest, WhatAKeyIsRefusedGetsNoLastFlight) {
  for (int i = 0; finish(route("10." + std::to_string(i) + ".0.1"), Pin{5}); ++i) now += 20ms;
  sent();
  Route from = route("198.51.100.1");
  ASSERT_EQ(begin(from), std::nullopt);
  last().kept.peer = Pin{5};
  last().now = Handshake::State::kDone;
  last().toSend = 1;
  later(from);
  EXPECT_TRUE(sent().empty());
  std::vector<HandshakeServer::Outcome> all = outcomes();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].error, "its key has finished too many handshakes");
}

// The attacker has an accepted key and a /48.
TEST_F(RespondersTest, AKeyWithManyAddressesHasNoKnownHostForgotten) {
  Route edge = route("198.51.100.1");
  ASSERT_TRUE(finish(edge, Pin{6}));
  int finished = 0;  // a few hellos are taken for replays (SeenNonces)
  for (int i = 0; i < 6000; ++i, now += 50ms)
    finished += finish(route("2001:db8:0:" + std::to_string(i) + "::1"), Pin{5});
  ASSERT_GE(finished, 5900);
  for (int i = 0; i < 5000; ++i)
    begin(route("10." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ".1"));
  ASSERT_EQ(begin(route("203.0.113.1")), Drop::kHandshakeLimit) << "strangers have no ration left";
  EXPECT_EQ(hello(edge), std::nullopt);
  for (Datagram& answer : sent()) at(edge).takeCookie(answer.bytes.span());
  size_t begun = handshakes.made.size();
  EXPECT_EQ(beginAnew(edge), std::nullopt);
  EXPECT_EQ(handshakes.made.size(), begun + 1);
}

TEST_F(RespondersTest, APeerThatLeavesTheConfigurationIsAStranger) {
  responders.welcome(*Address::parse("192.0.2.1"), Pin{5});
  responders.welcome(*Address::parse("192.0.2.2"), Pin{6});
  responders.setPeers({Pin{6}});
  auto begun = [&](const std::string& host) {
    size_t count = 0;
    for (uint16_t port = 1; port <= 30; ++port) count += begin(route(host, port)) == std::nullopt;
    return count;
  };
  EXPECT_EQ(begun("192.0.2.1"), HandshakeLimiter::kHostBegins.burst);
  EXPECT_EQ(begun("192.0.2.2"), 30u);
}

TEST_F(RespondersTest, AHostBeginsAFewAtOnceAndThenFourASecond) {
  size_t begun = 0;
  for (uint16_t port = 0; port < 1000; ++port, now += 10ms)
    begun += begin(route("192.0.2.1", port)) == std::nullopt;
  EXPECT_GE(begun, 16u + 38u);
  EXPECT_LE(begun, 16u + 41u);
}

TEST_F(RespondersTest, HostsOfPeersAreLetInWhateverStrangersDo) {
  Route edge = route("198.51.100.1");
  begin(edge);
  last().now = Handshake::State::kDone;
  later(edge);
  now += kHandshakeTimeout + 1s;
  responders.onTimer(now);
  ASSERT_EQ(responders.size(), 0u);
  size_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    Route stranger = route("10." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ".1");
    refused += begin(stranger) != std::nullopt;
  }
  EXPECT_GT(refused, 4000u);
  test::PuppetHandshake* before = handshakes.made.back();
  EXPECT_EQ(beginAnew(edge), std::nullopt);
  ASSERT_NE(handshakes.made.back(), before);
  for (int i = 0; i < 5000; ++i, now += 1ms)
    begin(route("11." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ".1"));
  EXPECT_EQ(later(edge), std::nullopt) << "and nobody displaces them";
  EXPECT_EQ(outcomes().size(), handshakes.made.size() - responders.size()) << "all others are told";
}

// The token buckets of strangers are shared by hash, and an attacker can empty all of them. Known
// peers have their own buckets. After a restart many peers may initiate at once, perhaps all from
// one address of a carrier-grade NAT.
TEST_F(RespondersTest, WhoWasHereBeforeTheStartIsNoStranger) {
  auto refused = [&](const std::string& host) {
    int count = 0;
    for (uint16_t port = 1; port <= 30; ++port) count += begin(route(host, port)).has_value();
    return count;
  };
  responders.welcome(*Address::parse("192.0.2.66"), Pin{5});
  EXPECT_EQ(refused("192.0.2.66"), 0);
  EXPECT_EQ(refused("192.0.2.67"), 30 - static_cast<int>(HandshakeLimiter::kHostBegins.burst));
}

TEST_F(RespondersTest, NoncesAreRememberedForAGenerationAtLeast) {
  SeenNonces nonces;
  Random noise(1);
  auto draw = [&] {
    HandshakeNonce nonce;
    for (uint8_t& byte : nonce) byte = static_cast<uint8_t>(noise.next());
    return nonce;
  };
  HandshakeNonce first = draw();
  nonces.add(first);
  size_t mistaken = 0;
  for (size_t i = 0; i < SeenNonces::kGeneration; ++i) {
    HandshakeNonce other = draw();
    mistaken += nonces.seen(other);
    nonces.add(other);
    ASSERT_TRUE(nonces.seen(first) && nonces.seen(other)) << i;
  }
  EXPECT_LE(mistaken, 10u);
  for (size_t i = 0; i < 2 * SeenNonces::kGeneration; ++i) nonces.add(draw());
  EXPECT_FALSE(nonces.seen(first));
}

TEST_F(RespondersTest, WhenTooManyAreDoneTheOldestIsForgotten) {
  auto host = [](size_t i) {
    return route("10." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ".1");
  };
  for (size_t i = 0; i <= HandshakeServer::kMaxDone; ++i, now += 2ms) {
    ASSERT_TRUE(finish(host(i), Pin{static_cast<uint8_t>(i / 64 + 1)})) << i;
  }
  EXPECT_EQ(responders.size(), HandshakeServer::kMaxDone);
  EXPECT_EQ(later(host(0)), Drop::kHandshakeGarbage);
  EXPECT_EQ(later(host(1)), std::nullopt);
}

}  // namespace
}  // namespace braid::responders_test
