#include "tunnel/peer/peer_set.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/peer/puppets.h"

namespace braid::peer_set_test {
namespace {

/// Peers that must initiate, and one to which this gateway initiates.
struct PeerSetTest : testing::Test {
  static constexpr uint8_t kPeers = 5;
  static constexpr uint8_t kCalled = 2;
  TunnelOptions options;
  PacketPool pool{2048, 64};
  test::PuppetProvider handshakes;
  EventQueue events;
  PacketEventQueue packets;
  SharedResources shared;
  PeerSet peers{options, pool, handshakes, events, packets, shared};
  UplinkMeters uplinks{1500};
  SecretRandom random{knownKey(1)};
  Time now = Time{} + 1s;

  PeerSetTest() {
    uplinks.set({{"wan", {{SocketId{1}, Address::Family::kV4}}}});
    replace(kPeers);
  }
  std::vector<std::unique_ptr<Peer>> replace(uint8_t count) {
    std::vector<PeerOptions> all(count);
    for (uint8_t i = 0; i < count; ++i) {
      all[i].name = std::to_string(i);
      all[i].pin = {i};
    }
    if (count > kCalled) all[kCalled].endpoints = {endpoint()};
    return peers.replace(std::move(all), uplinks.all(), random, now);
  }
  static Endpoint endpoint() { return *Endpoint::parse("192.0.2.1:4500"); }
  Peer& peer(uint8_t place) {
    Peer* found = nullptr;
    peers.forEach([&](Peer& p) { found = p.position == place ? &p : found; });
    return *found;
  }
  /// One turn of a driver. Returns the number of datagrams sent.
  size_t turn() {
    if (peers.nextDeadline(now) <= now)
      peers.onTimer(
          now, [] {}, [](const Peer&) {});
    size_t sent = 0;
    for (Datagram d; peers.pollDatagram(d, now);) ++sent;
    return sent;
  }
  /// Sends the next message to the responding peer and delivers its answer.
  std::vector<uint8_t> answer() {
    handshakes.made.at(0)->toSend = 1;
    peers.wake(peer(kCalled));
    Datagram d;
    if (!peers.pollDatagram(d, now)) return {};
    return test::answerTo(d.bytes.span(), peer(kCalled).options().pin);
  }
  /// A timer call without a deadline of the peers, as another part of the tunnel may cause it.
  /// After it all peers that can be at rest are at rest.
  void settle() {
    peers.onTimer(
        now, [] {}, [](const Peer&) {});
    turn();
  }
};

TEST_F(PeerSetTest, NewPeersRestAfterATimerCallAndAPollThatGivesNothing) {
  EXPECT_EQ(peers.awake(), kPeers);
  turn();
  EXPECT_EQ(peers.awake(), kPeers) << "new settings may show at the next timer call";
  settle();
  EXPECT_EQ(peers.awake(), 0u);
}

TEST_F(PeerSetTest, WhatHappensToAPeerWakesThatPeerUntilAPollGivesNothing) {
  settle();
  peers.wake(peer(3));
  EXPECT_EQ(peers.awake(), 1u);
  turn();
  EXPECT_EQ(peers.awake(), 0u);
  std::vector<uint8_t> bytes = answer();
  turn();
  ASSERT_EQ(peers.awake(), 0u);
  Route route{1, {}, endpoint()};
  EXPECT_TRUE(peers.onHandshakeDatagram(route, bytes, now));
  EXPECT_EQ(peers.awake(), 1u);
  route.remote.port = 1;
  EXPECT_FALSE(peers.onHandshakeDatagram(route, bytes, now)) << "nobody called there";
  settle();
  SessionSecrets secrets;
  secrets.peer = {4};
  secrets.sessionId = 9;
  peers.onAccepted(secrets, now);
  EXPECT_EQ(peers.awake(), 1u);
  settle();
  EXPECT_EQ(peers.awake(), 0u) << "the session waits for the peer's first datagram";
}

// The peer may choose a session that was pending when the configuration was read again.
TEST_F(PeerSetTest, PendingSessionsFollowThePeersOptions) {
  SessionSecrets secrets;
  secrets.peer = {4};
  secrets.sessionId = 9;
  peers.onAccepted(secrets, now);
  PeerOptions changed = peer(4).options();
  changed.keepalive = 3s;
  peer(4).setOptions(changed, now);
  size_t pending = 0;
  peer(4).forEachSession([&](Session& session) {
    ++pending;
    Subflow* s = session.paths().accept(SubflowId(0), {1, {}, endpoint()}, now);
    ASSERT_TRUE(s);
    s->onPacket(PacketNumber(0), true, Ecn::kNotEct, 1200, {1, {}, endpoint()}, now);
    auto frame = s->takePathFrame(now);
    ASSERT_TRUE(frame && frame->challenge);
    s->onPathResponse(frame->challenge->token, frame->route, now);
    ASSERT_TRUE(s->usable());
    const Time due = std::max(s->sender().lastSentAt(), now) + 3s;
    session.paths().onTimer(due - 1ms);
    EXPECT_FALSE(s->mustSend());
    session.paths().onTimer(due);
    EXPECT_TRUE(s->mustSend()) << "a PING, at the new interval";
  });
  EXPECT_EQ(pending, 1u);
}

// Otherwise a session that begins in the same timer call would send staged packets that have
// expired, instead of having them answered.
TEST_F(PeerSetTest, APeerGoesOnWithItsHandshakesAfterItsEventsAreHandled) {
  settle();  // the other peers rest
  const size_t first = handshakes.made.size();
  for (size_t i = 0, failed = 0; i < 100; ++i, now += 1s) {
    const size_t made = handshakes.made.size();
    // The last handshake fails, so that another begins after a pause.
    if (failed < made) handshakes.made[made - 1]->now = Handshake::State::kFailed;
    failed = made;
    peers.wake(peer(kCalled));
    peers.onTimer(
        now, [&] { EXPECT_EQ(handshakes.made.size(), made); }, [](const Peer&) {});
  }
  EXPECT_GE(handshakes.made.size(), first + 2);
}

TEST_F(PeerSetTest, APeerAtRestIsAwakeWhenItsDeadlineComes) {
  settle();
  handshakes.made.at(0)->timer = now + 300ms;
  peers.wake(peer(kCalled));
  settle();
  ASSERT_EQ(peers.awake(), 0u);
  EXPECT_EQ(peers.nextDeadline(now), now + 300ms);
  now += 299ms;
  turn();
  EXPECT_EQ(handshakes.made.at(0)->timeouts, 0);
  now += 1ms;
  handshakes.made.at(0)->toSend = 1;
  EXPECT_EQ(turn(), 1u);
  EXPECT_EQ(handshakes.made.at(0)->timeouts, 1);
}

TEST_F(PeerSetTest, ARefusedDatagramWakesThePeerThatSentIt) {
  settle();
  std::vector<uint8_t> bytes = answer();
  handshakes.made.at(0)->kept.sessionId = 9;
  handshakes.made.at(0)->now = Handshake::State::kDone;
  EXPECT_TRUE(peers.onHandshakeDatagram({1, {}, endpoint()}, bytes, now));
  Datagram sent;
  ASSERT_TRUE(peers.pollDatagram(sent, now)) << "a challenge";
  turn();
  ASSERT_EQ(peers.awake(), 0u);
  peers.forSender(sent, [&](Peer& p) { return p.onSendError(sent.route, now); });
  EXPECT_EQ(peers.awake(), 1u);
  turn();
  peers.forSender(sent, [&](Peer& p) { return p.onTooBig(sent.route, sent.bytes.size(), now); });
  EXPECT_EQ(peers.awake(), 1u);
  turn();
  ++sent.bytes.data()[4];  // the last byte of the id
  peers.forSender(sent, [&](Peer& p) { return p.onSendError(sent.route, now); });
  EXPECT_EQ(peers.awake(), 0u) << "no session has that id";
}

TEST_F(PeerSetTest, WithoutBuffersNobodyGoesToRest) {
  handshakes.made.at(0)->toSend = 1;
  std::vector<Packet> taken;
  while (Packet p = pool.allocate()) taken.push_back(std::move(p));
  settle();
  EXPECT_EQ(peers.awake(), 1u) << "the one with something to send";
  taken.clear();
  EXPECT_EQ(turn(), 1u);
}

TEST_F(PeerSetTest, NewSettingsWakeAll) {
  for (int change = 0; change < 4; ++change) {
    settle();
    ASSERT_EQ(peers.awake(), 0u);
    if (change == 0) peers.setTunables();
    if (change == 1) peers.setUplinks(uplinks.all(), now);
    if (change == 2) replace(kPeers);
    if (change == 3) peers.close();
    EXPECT_EQ(peers.awake(), kPeers);
  }
}

TEST_F(PeerSetTest, WhatASessionThrewAwayIsKnownWhenItHasEnded) {
  options.queueBytes = 4000;
  SessionSecrets secrets;
  secrets.peer = {4};
  secrets.sessionId = 9;
  peers.onAccepted(secrets, now);
  peer(4).forEachSession([&](Session& session) {
    for (int i = 0; i < 10; ++i) {
      Packet packet = pool.allocate();
      packet.append(800);
      EXPECT_EQ(session.onInnerPacket(std::move(packet), {}, false, false, now), std::nullopt);
    }
  });
  auto full = static_cast<size_t>(Drop::kQueueFull);
  uint64_t dropped = peers.drops()[full];
  EXPECT_GT(dropped, 0u);
  replace(0);
  EXPECT_EQ(peers.drops()[full], dropped);
}

TEST_F(PeerSetTest, PeersThatStayKeepTheirStateAndOthersAreGivenBack) {
  const Peer* first = &peer(0);
  std::vector<std::unique_ptr<Peer>> gone = replace(2);
  EXPECT_EQ(gone.size(), 3u);
  EXPECT_EQ(peers.size(), 2u);
  EXPECT_EQ(&peer(0), first);
}

}  // namespace
}  // namespace braid::peer_set_test
