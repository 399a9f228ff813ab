#include "tunnel/subflow/route.h"

#include <gtest/gtest.h>

namespace braid::peer_route_test {
namespace {

constexpr Duration kTimeout = 100ms;

struct PeerRouteTest : testing::Test {
  SecretRandom random{knownKey(3)};
  Time now = Time{} + 1s;
  Route home{1, {}, *Endpoint::parse("192.0.2.1:4433")};
  Route away{1, {}, *Endpoint::parse("198.51.100.7:999")};
  PeerRoute peer{home, true, random};

  /// The home route is validated.
  void SetUp() override {
    peer.prove(kTimeout, now);
    auto frame = peer.takeFrame(now);
    ASSERT_TRUE(frame && frame->challenge);
    ASSERT_TRUE(peer.onResponse(frame->challenge->token, frame->route, now));
    ASSERT_EQ(peer.nextDeadline(), kNever);
  }
  void receive(const Route& from, bool isNewest = true, bool isUnproven = false) {
    peer.onPacket(from, 1200, isNewest, isUnproven, kTimeout, now);
  }
};

TEST_F(PeerRouteTest, HasNothingToSendOnceProven) {
  EXPECT_FALSE(peer.hasFrame(now));
  EXPECT_FALSE(peer.takeFrame(now));
  receive(home);
  EXPECT_FALSE(peer.hasFrame(now));
}

TEST_F(PeerRouteTest, ANewAddressIsProvenBesideTheOneInUse) {
  receive(away);
  EXPECT_EQ(peer.route(), home);
  ASSERT_TRUE(peer.hasFrame(now));
  auto frame = peer.takeFrame(now);
  ASSERT_TRUE(frame && frame->challenge);
  EXPECT_EQ(frame->route, away);
  auto proof = peer.onResponse(frame->challenge->token, frame->route, now + 40ms);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->route, away);
  EXPECT_EQ(proof->rtt, 40ms);
  EXPECT_EQ(peer.route(), home) << "until the subflow takes it over";
}

TEST_F(PeerRouteTest, AnOlderDatagramFromElsewhereProvesNothing) {
  receive(away, false);
  EXPECT_FALSE(peer.hasFrame(now));
}

TEST_F(PeerRouteTest, ADatagramOnTheRouteInUseEndsTheDoubt) {
  receive(away);
  receive(home);
  EXPECT_FALSE(peer.hasFrame(now));
}

TEST_F(PeerRouteTest, AnUnprovenRouteIsProvenAgainAfterTheDoubt) {
  receive(away, true, true);
  receive(home, true, true);
  auto frame = peer.takeFrame(now);
  ASSERT_TRUE(frame && frame->challenge);
  EXPECT_EQ(frame->route, home);
}

TEST_F(PeerRouteTest, AWrongTokenProvesNothing) {
  receive(away);
  auto frame = peer.takeFrame(now);
  ASSERT_TRUE(frame && frame->challenge);
  PathToken wrong = frame->challenge->token;
  ++wrong[0];
  EXPECT_FALSE(peer.onResponse(wrong, away, now));
  EXPECT_TRUE(peer.onResponse(frame->challenge->token, frame->route, now));
  EXPECT_FALSE(peer.onResponse(frame->challenge->token, frame->route, now)) << "once";
}

TEST_F(PeerRouteTest, AnAnswerFromElsewhereProvesNothing) {
  receive(away);
  auto frame = peer.takeFrame(now);
  ASSERT_TRUE(frame && frame->challenge);
  EXPECT_TRUE(peer.isStray(frame->challenge->token, home));
  EXPECT_FALSE(peer.onResponse(frame->challenge->token, home, now))
      << "the route in use, which was not asked";
  EXPECT_FALSE(peer.isStray(frame->challenge->token, away));
  EXPECT_TRUE(peer.onResponse(frame->challenge->token, away, now));
}

TEST_F(PeerRouteTest, AnUnprovenRouteMayGetThreeTimesWhatCameFromThere) {
  PeerRoute stranger{away, false, random};
  stranger.prove(kTimeout, now);
  EXPECT_EQ(stranger.unprovenRoom(), 0u);
  stranger.onPacket(away, 100, true, true, kTimeout, now);
  stranger.onSent(away, 50);
  EXPECT_EQ(stranger.unprovenRoom(), 250u);
  stranger.onPacket(home, 100, true, true, kTimeout, now);
  EXPECT_EQ(stranger.unprovenRoom(), 0u) << "another one is asked now";
  PeerRoute configured{away, true, random};
  EXPECT_EQ(configured.unprovenRoom(), UINT64_MAX);
}

TEST_F(PeerRouteTest, LearnsTheLocalAddressThatTheKernelChose) {
  Route seen = home;
  seen.local = *Address::parse("198.51.100.20");
  receive(seen);
  EXPECT_EQ(peer.route(), seen);
  EXPECT_FALSE(peer.hasFrame(now));
}

TEST_F(PeerRouteTest, AChallengeIsAnsweredOnceWhereItCameFrom) {
  PathToken token{1, 2, 3};
  peer.onChallenge(token, away);
  EXPECT_TRUE(peer.owesResponse() && peer.hasFrame(now));
  auto frame = peer.takeFrame(now);
  ASSERT_TRUE(frame && frame->response);
  EXPECT_EQ(frame->route, away);
  EXPECT_EQ(frame->response->token, token);
  EXPECT_FALSE(peer.owesResponse() || peer.hasFrame(now));
}

TEST_F(PeerRouteTest, OnlyTheFirstChallengeIsMarked) {
  peer.use(away);
  peer.prove(kTimeout, now);
  EXPECT_TRUE(peer.takeFrame(now)->ect);
  now = peer.nextDeadline();
  EXPECT_FALSE(peer.takeFrame(now)->ect);
}

TEST_F(PeerRouteTest, WhatIsNeverAnsweredIsGivenUpUnlessItIsTheRouteInUse) {
  for (bool isUnproven : {false, true}) {
    peer.close();
    peer.prove(kTimeout, now);
    int challenges = 0;
    for (int i = 0; i < 100 && peer.nextDeadline() != kNever; ++i) {
      now = std::max(now, peer.nextDeadline());
      peer.onTimer(isUnproven, kTimeout, now);
      if (peer.hasFrame(now)) ++challenges, peer.takeFrame(now);
    }
    EXPECT_EQ(challenges == PathValidator::kMaxChallenges, !isUnproven) << challenges;
  }
}

TEST_F(PeerRouteTest, NothingIsSentOnceTheUplinkIsGone) {
  receive(away);
  peer.onChallenge({}, away);
  peer.close();
  EXPECT_FALSE(peer.hasFrame(now));
  EXPECT_EQ(peer.nextDeadline(), kNever);
}

}  // namespace
}  // namespace braid::peer_route_test
