#include "tunnel/peer/dialing.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/peer/puppets.h"

namespace braid::initiator_test {
namespace {

using Bytes = std::vector<uint8_t>;

struct InitiatorTest : testing::Test {
  PacketPool pool{2048, 8};
  test::PuppetProvider provider;
  Pin peer{9};
  HandshakeEnvelope responder{HandshakeEnvelope::Side::kResponder, peer};
  Time now = Time{} + 1s;
  SecretRandom random{knownKey(1)};
  ClientHandshake initiator{provider, random, peer, now};

  InitiatorTest() { sayHello(); }
  /// The handshake has one more ClientHello to send.
  void sayHello() {
    auto hello = test::Knocker::hello();
    provider.made.at(0)->says.assign(hello.begin(), hello.end());
    provider.made.at(0)->toSend = 1;
  }
  /// The initiator's next message without its envelope; nullopt: none.
  std::optional<HandshakeHeader> said() {
    Packet packet = pool.allocate();
    if (!initiator.pollDatagram(packet)) return std::nullopt;
    auto opened = responder.open(packet.span());
    EXPECT_TRUE(opened && isClientHello(opened->body));
    return opened ? std::optional(opened->header) : std::nullopt;
  }
  Bytes request(const HandshakeId& id, const HandshakeCookie& cookie) {
    HandshakeHeader header{HandshakeKind::kCookieRequest, id, {}, {}};
    random.fill(header.nonce);
    Packet packet = pool.copy(cookie);
    EXPECT_TRUE(responder.seal(header, packet));
    return {packet.view().begin(), packet.view().end()};
  }
};

TEST_F(InitiatorTest, ComesAgainAtOnceWithTheCookieThatItIsAskedFor) {
  std::optional<HandshakeHeader> first = said();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->cookie, HandshakeCookie{});
  EXPECT_FALSE(said());
  EXPECT_TRUE(initiator.onDatagram(request(first->id, HandshakeCookie{5}), now));
  std::optional<HandshakeHeader> second = said();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->cookie, HandshakeCookie{5});
  EXPECT_EQ(second->id, first->id);
  EXPECT_NE(second->nonce, first->nonce);
  sayHello();
  EXPECT_EQ(said()->cookie, HandshakeCookie{5}) << "and in all that follows";
}

TEST_F(InitiatorTest, ARequestThatIsRepeatedByAnEavesdropperIsNoNews) {
  Bytes overheard = request(said()->id, HandshakeCookie{5});
  EXPECT_TRUE(initiator.onDatagram(overheard, now));
  EXPECT_TRUE(said());
  for (int i = 0; i < 100; ++i) {
    initiator.onDatagram(overheard, now);
    EXPECT_FALSE(said());
  }
}

TEST_F(InitiatorTest, TakesNothingOfAnotherHandshake) {
  HandshakeId id = said()->id;
  ++id[0];
  EXPECT_FALSE(initiator.onDatagram(request(id, HandshakeCookie{5}), now));
  EXPECT_FALSE(said());
  EXPECT_FALSE(initiator.onDatagram(Bytes(2000, 0x22), now));
}

TEST_F(InitiatorTest, TheHandshakeLearnsHowLongTheFirstAnswerTook) {
  HandshakeId id = said()->id;
  test::PuppetHandshake& handshake = *provider.made.at(0);
  handshake.timer = now + 400ms;
  initiator.onTimer(now + 100ms);  // too early: nothing is sent
  initiator.onTimer(now + 400ms);
  initiator.onDatagram(request(id, HandshakeCookie{5}), now + 4s);
  initiator.onDatagram(request(id, HandshakeCookie{6}), now + 5s);
  ASSERT_EQ(handshake.answers.size(), 1u);
  EXPECT_EQ(handshake.answers[0].first, 3600ms) << "it may answer what was sent last";
  EXPECT_EQ(handshake.answers[0].second, 4s) << "or what was sent first";
}

TEST_F(InitiatorTest, WhatBelongsToAnotherHandshakeIsNoAnswer) {
  HandshakeId id = said()->id;
  ++id[0];
  initiator.onDatagram(request(id, HandshakeCookie{5}), now + 1s);
  EXPECT_FALSE(initiator.isAnswered());
  EXPECT_TRUE(provider.made.at(0)->answers.empty());
}

TEST(HandshakePatience, FollowsTheFirstAnswer) {
  constexpr Time kBegin{100s};
  HandshakePatience fast(kBegin);
  EXPECT_EQ(fast.end(), kBegin + 10s);
  fast.onAnswer(60ms, kBegin + 60ms);
  EXPECT_EQ(fast.end(), kBegin + 10s);
  HandshakePatience slow(kBegin);
  slow.onAnswer(4s, kBegin + 4s);
  EXPECT_EQ(slow.end(), kBegin + 36s);
  HandshakePatience slowest(kBegin);
  slowest.onAnswer(9s, kBegin + 9s);
  EXPECT_EQ(slowest.end(), kBegin + 60s);
}

}  // namespace
}  // namespace braid::initiator_test
