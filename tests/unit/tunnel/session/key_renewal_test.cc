#include "tunnel/session/key_renewal.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/raw_peer.h"
#include "tests/unit/tunnel/session/session_pair_test.h"

namespace braid::key_renewal_test {
namespace {

/// Two sessions, and a responder's sessions from new handshakes.
struct KeyRenewalTest : test::SessionPairTest {
  std::map<uint32_t, std::unique_ptr<Session>> finished;  ///< handshakes at the hub
  std::map<const Session*, PacketNumber> largest;         ///< of subflow 0, by who sent it
  uint32_t lost = 0;           ///< one bit for each of the next datagrams; 1: it is lost
  std::vector<Datagram> kept;  ///< copies of what the edge has sent, when `keeps`
  bool keeps = false;

  static SessionSecrets secretsOf(uint32_t id) {
    SessionSecrets secrets;
    secrets.initiatorSecret.fill(static_cast<uint8_t>(id));
    secrets.responderSecret.fill(static_cast<uint8_t>(id + 100));
    secrets.sessionId = id;
    return secrets;
  }
  void SetUp() override { start(secretsOf(7)); }
  std::optional<Drop> put(Session& to, Packet datagram, const Route& arrival) {
    std::optional<DatagramHeader> header = readHeader(datagram.view());
    std::optional<Drop> drop =
        to.onDatagram(*header, arrival, Ecn::kNotEct, std::move(datagram), now);
    if (std::optional<uint32_t> wish = to.renewal().takeWish()) {
      auto fresh = finished.extract(*wish);
      to.renewal().answer(*wish, fresh ? &fresh.mapped()->renewal() : nullptr, now);
    }
    return drop;
  }
  bool carry(Session& from, Session& to, const Route& arrival) override {
    Datagram d;
    if (!from.pollDatagram(d, now)) return false;
    PacketNumber pn(readHeader(d.bytes.view())->packetNumber);
    EXPECT_TRUE(!largest.contains(&from) || pn > largest[&from]) << "numbers go on";
    largest[&from] = pn;
    if (keeps && &from == edge.get()) kept.push_back({d.route, d.ecn, pool.copy(d.bytes.view())});
    bool isLost = std::exchange(lost, lost >> 1) & 1;
    if (cut || isLost) return true;
    if (std::optional<Drop> cause = put(to, std::move(d.bytes), arrival)) refused.push_back(*cause);
    return true;
  }
  /// Completes a handshake between the two, at the responder first.
  void handshake(uint32_t id, bool known = true) {
    if (known) finished[id] = make(secretsOf(id), Role::kResponder, hubEnd);
    edge->renewal().propose(secretsOf(id), now);
  }
  SessionStatus of(const Session& session) const {
    SessionStatus status;
    session.fill(status, now);
    return status;
  }
};

TEST_F(KeyRenewalTest, AFreshHandshakeReplacesTheKeysAndNothingElse) {
  for (uint32_t id = 20; id < 40; ++id) {
    offer(*edge, 1), offer(*hub, 1);
    handshake(id);
    EXPECT_TRUE(edge->renewal().isUnderWay());
    run(100ms);
    EXPECT_EQ(of(*edge).keyGeneration, id - 19);
    EXPECT_EQ(of(*hub).keyGeneration, id - 19);
    EXPECT_TRUE(edge->renewal().isUnderWay()) << "the old keys have not gone";
    run(3s);
    EXPECT_FALSE(edge->renewal().isUnderWay() || hub->renewal().isUnderWay());
    EXPECT_LE(of(*edge).keyAge, 3100ms);
    EXPECT_LE(of(*hub).keyAge, 3100ms);
  }
  EXPECT_EQ(hubEnd.delivered(), 20u);
  EXPECT_EQ(edgeEnd.delivered(), 20u);
  EXPECT_EQ(refused, std::vector<Drop>{});
  EXPECT_EQ(of(*edge).subflows.at(0).lostPackets + of(*hub).subflows.at(0).lostPackets, 0u);
  EXPECT_EQ(edge->id(), 7u) << "the session keeps its name";
  EXPECT_TRUE(finished.empty());
}

// Loses every possible subset of the first six datagrams of both directions.
TEST_F(KeyRenewalTest, WhatIsLostIsSaidAgain) {
  for (uint32_t pattern = 0; pattern < 64; ++pattern) {
    handshake(1000 + pattern);
    lost = pattern;
    offer(*edge, 1), offer(*hub, 1);
    run(6s);
    EXPECT_EQ(of(*edge).keyGeneration, pattern + 1);
    EXPECT_EQ(of(*hub).keyGeneration, pattern + 1);
    EXPECT_FALSE(edge->renewal().isUnderWay() || hub->renewal().isUnderWay()) << pattern;
  }
  EXPECT_EQ(hubEnd.delivered(), 64u);
  EXPECT_EQ(edgeEnd.delivered(), 64u);
  EXPECT_EQ(refused, std::vector<Drop>{});
}

TEST_F(KeyRenewalTest, AHandshakeThatTheResponderHasForgottenIsRefused) {
  handshake(20, false);
  run(100ms);
  EXPECT_FALSE(edge->renewal().isUnderWay());
  EXPECT_TRUE(edge->renewal().takeRefusal());
  EXPECT_FALSE(edge->renewal().takeRefusal()) << "once";
  EXPECT_EQ(of(*edge).keyGeneration + of(*hub).keyGeneration, 0u);
  offer(*edge, 1);
  handshake(21);
  run(100ms);
  EXPECT_EQ(of(*hub).keyGeneration, 1u);
  EXPECT_FALSE(edge->renewal().takeRefusal());
  EXPECT_EQ(hubEnd.delivered(), 1u);
}

TEST_F(KeyRenewalTest, WhatWasSealedUnderOldKeysOpensForThreeSecondsOnly) {
  cut = keeps = true;
  for (uint16_t flow = 1; flow <= 10; ++flow) offer(*edge, flow);
  while (carry(*edge, *hub, hubRoute)) {
  }
  ASSERT_GE(kept.size(), 2u);
  cut = keeps = false;
  handshake(20);
  run(2900ms);
  ASSERT_EQ(of(*hub).keyGeneration, 1u);
  EXPECT_EQ(put(*hub, std::move(kept.front().bytes), hubRoute), std::nullopt) << "late, and good";
  run(200ms);
  EXPECT_EQ(put(*hub, std::move(kept.back().bytes), hubRoute), Drop::kBadSeal);
}

// ---- peers that do not keep to it

struct LyingPeerTest : KeyRenewalTest {
  test::RawPeer liar{secretsOf(7), Role::kInitiator, now};
  PacketNumber next{100000};

  template <typename... F>
  std::optional<Drop> say(const F&... frames) {
    return put(*hub, liar.seal(0_subflow, next++, test::framesOf(frames...), pool), hubRoute);
  }
  /// The hub's answer.
  std::vector<KeysReadyFrame> answers() {
    std::vector<KeysReadyFrame> all;
    for (Datagram d; hub->pollDatagram(d, now);) {
      std::optional<test::RawPeer::Opened> opened = liar.open(d, now);
      EXPECT_TRUE(opened);
      for (const WireFrame& frame : opened->frames) {
        if (const auto* answer = std::get_if<KeysReadyFrame>(&frame)) all.push_back(*answer);
      }
    }
    return all;
  }
};

TEST_F(LyingPeerTest, WishesWithoutHandshakesCostOneAnswer) {
  RecordProperty("rule", "renew.handshake");
  for (uint32_t id = 1000; id < 6000; ++id) EXPECT_EQ(say(RenewKeysFrame{id}), std::nullopt);
  std::vector<KeysReadyFrame> all = answers();
  ASSERT_EQ(all.size(), 1u) << "the last one counts";
  EXPECT_EQ(all[0].handshake, 5999u);
  EXPECT_FALSE(all[0].ready);
  EXPECT_FALSE(hub->over());
  EXPECT_EQ(of(*hub).keyGeneration, 0u);
}

TEST_F(LyingPeerTest, AWishThatComesAgainHasTheSameAnswer) {
  finished[20] = make(secretsOf(20), Role::kResponder, hubEnd);
  for (int i = 0; i < 5; ++i) {
    say(RenewKeysFrame{20});
    std::vector<KeysReadyFrame> all = answers();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(all[0].ready) << i;
  }
  say(RenewKeysFrame{7});
  EXPECT_EQ(answers().size(), 1u) << "the handshake of the session itself: nothing happens";
  EXPECT_EQ(of(*hub).keyGeneration, 0u);
}

// Only the initiator of a session starts a rekey.
TEST_F(LyingPeerTest, FramesOfTheWrongSideAreIgnored) {
  RecordProperty("rule", "renew.side keys.handshake");
  handshake(20, false);
  finished[21] = make(secretsOf(21), Role::kResponder, hubEnd);
  EXPECT_EQ(say(KeysReadyFrame{20, true}, KeysReadyFrame{0, false}), std::nullopt);
  EXPECT_EQ(of(*hub).keyGeneration, 0u);
  test::RawPeer responder(secretsOf(7), Role::kResponder, now);
  auto tell = [&](PacketNumber pn, const auto& frame) {
    return put(*edge, responder.seal(0_subflow, pn, test::framesOf(frame), pool), edgeRoute);
  };
  EXPECT_EQ(tell(200000_pn, RenewKeysFrame{21}), std::nullopt);
  EXPECT_TRUE(finished.contains(21)) << "nobody asked for it";
  EXPECT_EQ(tell(200001_pn, KeysReadyFrame{19, true}), std::nullopt);
  EXPECT_EQ(tell(200002_pn, KeysReadyFrame{19, false}), std::nullopt);
  EXPECT_TRUE(edge->renewal().isUnderWay()) << "not the answer to its wish";
  EXPECT_EQ(of(*edge).keyGeneration, 0u);
  EXPECT_FALSE(edge->renewal().takeRefusal());
}

}  // namespace
}  // namespace braid::key_renewal_test
