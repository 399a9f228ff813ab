// Sessions that rekey repeatedly by new handshakes.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::renewal_test {
namespace {

TunnelOptions renewing(Duration after = 10s) {
  TunnelOptions options;
  options.rekeyAfter = after;
  return options;
}

PeerStatus peerOf(const Node& node) {
  return node.status().peers[0];
}
/// True when the edge's keys are of this generation or a later one and the hub's of the same. A
/// change may be in progress.
void expectRenewals(const Scenario& s, unsigned least) {
  EXPECT_GE(peerOf(s.edge).keyGeneration, least) << s.report();
  EXPECT_LE(peerOf(s.edge).keyGeneration - peerOf(s.hub).keyGeneration, 1u) << s.report();
}
uint64_t badSeals(const Scenario& s) {
  return s.edge.drops(Drop::kBadSeal) + s.hub.drops(Drop::kBadSeal);
}
uint64_t handshakesFailed(const Scenario& s) {
  return s.edge.countEvents(Event::Kind::kHandshakeFailed) +
         s.hub.countEvents(Event::Kind::kHandshakeFailed);
}

const LinkOptions kSlowDsl{.rateBitsPerSecond = 4_Mbit, .delay = 10ms};
const LinkOptions kSlowLte{.rateBitsPerSecond = 2_Mbit, .delay = 30ms};
const TcpOptions kSteady{.window = 16 << 10};

TEST(Renewal, ManyUnderTrafficLoseReorderAndRepeatNothing) {
  Scenario s(1, renewing());
  s.path("dsl", kDsl).start();  // a second path would cause reordering
  TcpFlow& down = s.download(100_MB, {.window = 4 << 10});
  TcpFlow& up = s.upload(100_MB, {.window = 4 << 10});
  UdpFlow& call = s.call({.count = 9000});
  UdpFlow& answer = s.call({.count = 9000}, true);
  s.run(181s);
  expectRenewals(s, 16);
  EXPECT_GE(peerOf(s.edge).age, 180s) << "one session";
  EXPECT_GT(down.received() + up.received(), 10_MB);
  for (TcpFlow* file : {&down, &up})
    EXPECT_EQ(file->gaps() + file->retransmits() + file->wrongBytes() + file->timeouts(), 0u)
        << file->describe();
  for (UdpFlow* stream : {&call, &answer}) {
    EXPECT_EQ(stream->received(), stream->sent());
    EXPECT_EQ(stream->duplicates() + stream->reordered() + stream->wrong(), 0u);
  }
  EXPECT_EQ(badSeals(s) + handshakesFailed(s), 0u);
  EXPECT_EQ(peerOf(s.edge).failedRenewals + peerOf(s.hub).failedRenewals, 0u);
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown) + s.hub.countEvents(Event::Kind::kPeerDown),
            0u);
}

class LossyRenewal : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, LossyRenewal, testing::Values(1, 2, 3));

// Handshakes, rekey requests and answers are lost, delayed and duplicated, and epochs change in
// between.
TEST_P(LossyRenewal, WhatWasTakenArrives) {
  TunnelOptions options = renewing();
  options.rekeyPackets = 1024;
  Scenario s(GetParam(), options);
  auto bad = [](LinkOptions o) {
    o.loss = 0.05, o.duplicate = 0.02, o.reorder = 0.1, o.reorderDelay = 70ms;
    return o;
  };
  s.path("dsl", bad(kSlowDsl)).path("lte", bad(kSlowLte)).start(20s);
  TcpFlow& down = s.download(4_MB, kSteady);
  TcpFlow& up = s.upload(4_MB, kSteady);
  s.run(240s);
  EXPECT_TRUE(down.done()) << down.describe() << s.report();
  EXPECT_TRUE(up.done()) << up.describe() << s.report();
  EXPECT_EQ(down.wrongBytes() + up.wrongBytes(), 0u);
  expectRenewals(s, 12);
  EXPECT_EQ(badSeals(s), 0u) << "old keys stay for what is late";
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown) + s.hub.countEvents(Event::Kind::kPeerDown),
            0u);
}

TEST(Renewal, AnIdleSessionHasItsToo) {
  Scenario s(2, renewing());
  s.path("dsl", kDsl).path("lte", kLte).start().run(120s);
  expectRenewals(s, 10);
  EXPECT_LE(peerOf(s.edge).keyAge, 11s);
  EXPECT_GE(peerOf(s.edge).age, 120s);
}

TEST(Renewal, NobodyAsksForItWhenItIsOff) {
  Scenario s(3, renewing(0s));
  s.path("dsl", kDsl).start();
  uint64_t handshakes = s.hub.handshakes().accepted();
  s.run(3h);
  EXPECT_EQ(s.hub.handshakes().accepted(), handshakes);
  EXPECT_EQ(peerOf(s.edge).keyGeneration + peerOf(s.edge).keyEpoch, 0u);
  EXPECT_GE(peerOf(s.edge).keyAge, 3h);
}

TEST(Renewal, ComesAnHourAfterTheLastOneOrALittleEarlier) {
  Scenario s(4);
  s.path("dsl", kDsl).start().run(44min);
  EXPECT_EQ(peerOf(s.edge).keyGeneration, 0u);
  s.run(17min);
  expectRenewals(s, 1);
  for (const Node* node : {&s.edge, &s.hub})
    EXPECT_EQ(node->countEvents(Event::Kind::kRekeyed), 1u)
        << "no other change of keys came before";
}

// The session continues for its normal lifetime, and the status shows the failed rekey.
TEST(Renewal, ARefusalEndsNothingAndIsTriedAgain) {
  Scenario s(5, renewing());
  s.path("dsl", kSlowDsl).path("lte", kSlowLte).start();
  s.hub.handshakes().setAcceptedPins({});
  UdpFlow& call = s.call({.count = 4900});
  s.run(100s);
  EXPECT_TRUE(s.isUp());
  EXPECT_EQ(call.received(), call.sent());
  EXPECT_EQ(peerOf(s.edge).keyGeneration, 0u);
  EXPECT_GE(peerOf(s.edge).keyAge, 100s);
  EXPECT_GE(peerOf(s.edge).failedRenewals, 2u) << s.report();
  EXPECT_LE(peerOf(s.edge).failedRenewals, 5u) << "with pauses";
  EXPECT_GE(s.edge.countEvents(Event::Kind::kHandshakeFailed), 2u);
  s.hub.handshakes().setAcceptedPins({pinOf(s.edge.number())});
  s.run(150s);
  expectRenewals(s, 1);
  EXPECT_GE(peerOf(s.edge).age, 250s) << "still the same session";
  EXPECT_LE(peerOf(s.edge).keyAge, 11s);
}

TEST(Renewal, APathThatDiesMeanwhileIsNotMissed) {
  for (int at = 7000; at <= 10000; at += 100) {
    Scenario s(6, renewing());
    s.path("dsl", kSlowDsl).path("lte", kSlowLte).start();
    UdpFlow& call = s.call({.count = 1500});
    s.run(std::chrono::milliseconds(at)).cut("dsl").run(31s - std::chrono::milliseconds(at));
    expectRenewals(s, 1);
    EXPECT_GE(peerOf(s.edge).age, 31s) << at;
    EXPECT_GE(call.received() + 60, call.sent()) << at;
  }
}

// A rekey handshake that a restarted gateway answers gives a new session.
TEST(Renewal, AResponderThatRestartsMeanwhileIsReachedAgain) {
  for (int at = 7000; at <= 10000; at += 100) {
    Scenario s(7, renewing());
    s.path("dsl", kSlowDsl).start();
    s.run(std::chrono::milliseconds(at));
    EXPECT_TRUE(s.hub.stop());
    s.hub.start();
    s.run(16s);  // a keepalive has been missed
    ASSERT_TRUE(s.isUp()) << at << s.report();
    UdpFlow& call = s.call({.count = 100});
    s.run(20s);
    EXPECT_EQ(call.received(), call.sent()) << at;
    expectRenewals(s, 1);
  }
}

// The side that initiated the surviving session requests new keys; the other side does not.
TEST(Renewal, OfTwoThatMayBeginOneAsks) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    World world(seed);
    Node& east = world.addNode("east", renewing());
    Node& west = world.addNode("west", renewing());
    world.pair(east, west);
    world.join(east, west, "east", kDsl, kDsl);
    world.join(west, east, "west", kDsl, kDsl);
    world.start();
    world.run(5s);
    uint64_t begun = east.handshakes().accepted() + west.handshakes().accepted();
    world.run(120s);
    EXPECT_GE(peerOf(east).keyGeneration, 10u) << world.report();
    EXPECT_NEAR(peerOf(east).keyGeneration, peerOf(west).keyGeneration, 1);
    uint64_t made = east.handshakes().accepted() + west.handshakes().accepted() - begun;
    EXPECT_NEAR(static_cast<double>(made), peerOf(east).keyGeneration, 1);
    EXPECT_GE(peerOf(east).age, 120s);
    EXPECT_EQ(east.countEvents(Event::Kind::kPeerDown) + west.countEvents(Event::Kind::kPeerDown),
              0u);
  }
}

TEST(Renewal, TheSameSeedGivesTheSameBytes) {
  auto hash = [](uint64_t seed) {
    Scenario s(seed, renewing());
    s.path("dsl", {.rateBitsPerSecond = 4_Mbit, .delay = 10ms, .loss = 0.02})
        .path("lte", kSlowLte)
        .start();
    s.call({.count = 1000});
    s.run(40s);
    return s.world.hash();
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
}

}  // namespace
}  // namespace braid::sim::renewal_test
