// Gateways that are killed and restarted, and the restart notices that they send to their known
// initiators (tunnel/peer/restart_notice.h).

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"
#include "tunnel/peer/restart_notice.h"
#include "tunnel/wire/header.h"

namespace braid::sim::restart_test {
namespace {

/// Time until a killed daemon listens again: the supervisor's pause before it starts the daemon,
/// and the daemon's start.
constexpr Duration kDowntime = 150ms;
const TcpOptions kSmallWindow{.window = 64 << 10};

/// An edge and a hub that sends restart notices.
struct Pair : Scenario {
  std::vector<Bytes> calls;             ///< restart notices that the hub sent
  std::vector<Bytes> sessionDatagrams;  ///< session datagrams that the edge sent

  explicit Pair(uint64_t seed, Duration keepalive = 10s) : Scenario(seed, {}, keepalive) {
    hub.callsBack = true;
    path("dsl", kDsl).path("lte", kLte).start();
    world.onWire = [this](Path&, bool up, const WireDatagram& d) {
      if (!up && isRestartNotice(d.bytes)) calls.push_back(d.bytes);
      if (up && isRestartNotice(d.bytes)) ADD_FAILURE() << "a call is not answered by another one";
      if (up && isSessionDatagram(d.bytes)) sessionDatagrams.push_back(d.bytes);
    };
  }
  Pair& kill(Node& node) {
    EXPECT_TRUE(node.stop());
    run(kDowntime);
    node.start();
    return *this;
  }
  /// Begins once the path MTUs are known, so that segments have their full size.
  TcpFlow& transfer(bool down) {
    run(1s);
    TcpFlow& file = down ? download(4_MB, kSmallWindow) : upload(4_MB, kSmallWindow);
    run(700ms);
    EXPECT_GT(file.mss(), 1300u);
    return file;
  }
  bool comesUp(Duration within) {
    return world.runUntil([this] { return isUp(); }, within);
  }
  /// Delivers a datagram to the edge as if the hub had sent it.
  void toEdge(ByteView bytes) {
    const Path& dsl = world.path("dsl");
    world.inject(edge, {dsl.near().socket, {}, dsl.far().endpoint}, bytes);
  }
};

class Restart : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Restart, testing::Values(1, 2, 3, 4));

// Measured without restart notices: 2.75 s. Measured without staged packets: 0.62 s, because the
// sender's first retransmission arrives during the handshake and the second one 400 ms later.
TEST_P(Restart, OfTheResponderStallsADownloadForLessThanTwoTimeoutsOfItsSender) {
  Pair s(GetParam());
  TcpFlow& file = s.transfer(true);
  s.run(GetParam() * 7ms);
  file.restartStall();
  s.kill(s.hub);
  ASSERT_TRUE(s.finish(file, 20s));
  EXPECT_LE(file.longestStall(), 450ms) << file.describe() << s.report();
  EXPECT_EQ(file.tooBigs(), 0u) << "its segments are as large as before";
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 1u);
}

// Data that the responder's old session had in flight to the edge is sent by its next session.
TEST_P(Restart, OfTheInitiatorStallsADownloadForLessThanTwoTimeoutsOfItsSender) {
  Pair s(GetParam());
  TcpFlow& file = s.transfer(true);
  s.run(GetParam() * 7ms);
  file.restartStall();
  s.kill(s.edge);
  ASSERT_TRUE(s.finish(file, 20s));
  EXPECT_LE(file.longestStall(), 450ms) << file.describe() << s.report();
  EXPECT_EQ(file.tooBigs(), 0u) << "its segments are as large as before";
  EXPECT_TRUE(s.calls.empty()) << "the hub was not restarted";
}

TEST_P(Restart, OfEitherStallsAnUploadForLessThanTwoTimeoutsOfItsSender) {
  for (bool ofHub : {false, true}) {
    Pair s(GetParam());
    TcpFlow& file = s.transfer(false);
    s.run(GetParam() * 7ms);
    file.restartStall();
    s.kill(ofHub ? s.hub : s.edge);
    ASSERT_TRUE(s.finish(file, 20s));
    EXPECT_LE(file.longestStall(), 450ms) << ofHub << file.describe() << s.report();
    EXPECT_EQ(file.tooBigs(), 0u) << ofHub;
  }
}

// Even packets of a call, which are normally not held back, wait for the session: none is lost, and
// none arrives twice.
TEST_P(Restart, PacketsWaitForAPeerThatComesBack) {
  for (bool ofHub : {false, true}) {
    Pair s(GetParam());
    s.run(1s);
    Node& dead = ofHub ? s.hub : s.edge;
    EXPECT_TRUE(dead.stop());
    s.run(kDowntime);
    dead.start();
    UdpFlow& call = s.call({.interval = 10ms, .count = 50}, ofHub);
    s.run(2s);
    EXPECT_EQ(call.received(), 50u) << ofHub << s.report();
    EXPECT_EQ(call.duplicates(), 0u);
    EXPECT_EQ(call.reordered(), 0u);
    EXPECT_LE(call.worstDelay(), 400ms);
  }
}

// Found by review: when the uplink's EMSGSIZE ended the MTU search, the packets that waited for its
// result were not sent at once, and later packets overtook them.
TEST_P(Restart, WhatWaitsForTheSizeOfThePathIsNotOvertaken) {
  for (size_t mtu : {1492, 1480, 1460}) {
    Pair s(GetParam());
    s.cut("lte");
    s.world.path("dsl").uplinkMtu = mtu;
    s.run(3s);
    s.kill(s.edge);
    UdpFlow& call = s.call({.payload = 1350, .interval = 1ms, .count = 200});
    s.run(2s);
    EXPECT_EQ(call.received(), 200u) << mtu << s.report();
    EXPECT_EQ(call.reordered(), 0u) << mtu;
  }
}

// Measured without restart notices: up to 14 s. A keepalive of one minute is the longest allowed.
TEST_P(Restart, OfAnIdleResponderLeavesTheEdgeUnreachableForLessThanASecond) {
  Pair s(GetParam(), 60s);
  s.run(40s);
  s.kill(s.hub);
  UdpFlow& call = s.call({.interval = 10ms, .count = 100}, true);
  s.run(2s);
  EXPECT_GE(call.received(), 70u) << s.report();
  size_t made = s.calls.size();
  s.run(20s);
  EXPECT_EQ(s.calls.size(), made) << "who has come is called no more";
}

TEST_P(Restart, OfAnIdleInitiatorLeavesTheEdgeUnreachableForLessThanASecond) {
  Pair s(GetParam(), 60s);
  s.run(40s);
  s.kill(s.edge);
  UdpFlow& call = s.call({.interval = 10ms, .count = 100}, true);
  s.run(2s);
  EXPECT_GE(call.received(), 70u) << s.report();
}

// Behind a NAT the restart notice arrives because it comes from the address to which the edge sent
// before.
TEST(Restart, BehindANatTheEdgeIsCalledAtItsOutside) {
  Pair s(5);
  s.world.path("dsl").enableNat(30s, s.world.now());
  s.world.path("dsl").rebind(true);
  s.cut("lte").run(25s);
  s.kill(s.hub);
  EXPECT_TRUE(s.comesUp(400ms)) << s.report();
}

// The first restart notices are lost. The edge is silent, so nothing else could tell it of the
// restart.
TEST(Restart, ACallThatIsLostIsRepeated) {
  Pair s(6, 60s);
  s.run(5s).cut("dsl").cut("lte");
  s.kill(s.hub).run(200ms).mend("dsl").mend("lte");
  EXPECT_TRUE(s.comesUp(900ms)) << s.report();
  s.run(10s);
  EXPECT_TRUE(s.isUp());
}

// An edge that gets no answer retries at growing intervals of up to ten seconds.
TEST(Restart, AResponderThatWasAwayForLongIsThereAtOnce) {
  for (bool farewell : {false, true}) {
    Pair s(7);
    s.run(2s);
    EXPECT_TRUE(farewell ? s.hub.shutDown() : s.hub.stop());
    s.run(67s);
    s.hub.start();
    EXPECT_TRUE(s.comesUp(400ms)) << farewell << s.report();
    s.run(20s);
    EXPECT_TRUE(s.isUp()) << "and stays";
  }
}

TEST(Restart, OfBothAtOnceEndsInOneSessionAndFewDatagrams) {
  Pair s(8, 60s);
  s.run(5s);
  EXPECT_TRUE(s.edge.stop());
  EXPECT_TRUE(s.hub.stop());
  s.run(kDowntime);
  s.edge.start();
  s.hub.start();
  EXPECT_TRUE(s.comesUp(500ms)) << s.report();
  s.run(5s);
  EXPECT_LE(s.calls.size(), 2 * RestartNotices::kRounds);
  uint64_t before = s.edge.sentDatagrams + s.hub.sentDatagrams;
  s.run(20s);
  EXPECT_LE(s.edge.sentDatagrams + s.hub.sentDatagrams - before, 100u) << "nothing goes round";
}

// Known initiators, which get restart notices, are only peers without a configured endpoint. The
// edge knows the hub's endpoint and can initiate itself, so it sends the hub no notice.
TEST(Restart, APeerWithAnEndpointIsNotCalledBack) {
  Pair s(9);
  s.run(1s);
  s.edge.callsBack = true;
  s.kill(s.edge).run(5s);
  EXPECT_TRUE(s.calls.empty());
  EXPECT_TRUE(s.edge.tunnel().knownInitiators(s.edge.clock()).empty());
  EXPECT_EQ(s.hub.tunnel().knownInitiators(s.hub.clock()).size(), 1u);
}

// ---- who would end a session that is alive

TEST(Restart, AForgedCallEndsNothing) {
  testing::Test::RecordProperty("rule", "call.token");
  Pair s(10);
  s.call({.count = 50});
  s.run(2s);
  ASSERT_FALSE(s.sessionDatagrams.empty());
  std::optional<DatagramHeader> header = readHeader(s.sessionDatagrams.back());
  ASSERT_TRUE(header);
  Random random(1);
  PacketPool pool(2048, 1);
  uint64_t sent = s.edge.sentDatagrams, before = s.edge.drops(Drop::kRestartNotice);
  for (int i = 0; i < 1000; ++i) {
    RestartNotice call{header->session, {}};  // visible to everybody in the clear header
    for (uint8_t& byte : call.token) byte = static_cast<uint8_t>(i < 2 ? 0 - i : random.next());
    Packet packet = pool.allocate();
    writeRestartNotice(call, packet);
    s.toEdge(packet.view());
    s.world.inject(s.hub, {1, address("203.0.113.2"), *Endpoint::parse("192.0.2.66:6666")},
                   packet.view());
  }
  for (size_t size = 1; size < 2 * kRestartNoticeSize; ++size) s.toEdge(Bytes(size, 0x23));
  EXPECT_EQ(s.edge.drops(Drop::kRestartNotice), before + 1000 + 2 * kRestartNoticeSize - 1);
  EXPECT_EQ(s.hub.drops(Drop::kRestartNotice), 1000u);
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 0u);
  s.run(1ms);
  EXPECT_LE(s.edge.sentDatagrams, sent + 5) << "and is not answered";
  EXPECT_EQ(s.world.unroutable(), 0u);
}

// An attacker on the path records the restart notices and replays them to the next session.
TEST(Restart, ACallThatIsRepeatedDoesNotEndTheNextSession) {
  Pair s(11);
  s.run(1s);
  s.kill(s.hub).run(1s);
  ASSERT_TRUE(s.isUp());
  ASSERT_FALSE(s.calls.empty());
  s.edge.events.clear();
  for (int i = 0; i < 100; ++i) {
    for (const Bytes& call : s.calls) s.toEdge(call);
    s.run(10ms);
  }
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 0u);
  EXPECT_TRUE(s.isUp());
}

// The attacker replays a notice to an edge whose handshakes do not get through. Without the check
// the edge would restart its handshake all the time.
TEST(Restart, ACallIsGoodForOneTime) {
  Pair s(14);
  s.run(1s);
  for (const char* path : {"dsl", "lte"})
    s.world.path(path).changeUp([](LinkOptions& o) { o.loss = 1; }, s.world.now());
  s.kill(s.hub).run(1s);
  ASSERT_FALSE(s.calls.empty());
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 1u) << "the call has come";
  std::vector<Bytes> seen = s.calls;
  uint64_t hellos = 0;
  s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
    hellos += up && d.bytes[0] == static_cast<uint8_t>(HandshakeKind::kInitiator);
  };
  for (int i = 0; i < 100; ++i) {
    for (const Bytes& call : seen) s.toEdge(call);
    s.run(100ms);
  }
  EXPECT_GT(hellos, 2u);
  EXPECT_LE(hellos, 40u) << "as if nobody had called again";
}

// Datagrams of earlier sessions and of strangers are not answered.
TEST(Restart, DatagramsOfSessionsThatAreGoneGetNoAnswer) {
  Pair s(12);
  s.call({.count = 50});
  s.run(2s);
  s.kill(s.hub).run(8s);
  Route stranger{1, address("203.0.113.2"), *Endpoint::parse("192.0.2.66:6666")};
  for (const Bytes& old : s.sessionDatagrams) s.world.inject(s.hub, stranger, old);
  s.run(1s);
  EXPECT_EQ(s.world.unroutable(), 0u);
}

// ---- many

TEST(Restart, TwoHundredEdgesAreBackWithinASecond) {
  constexpr size_t kEdges = 200;
  TunnelOptions small;  // for memory's sake
  small.decodeBuffer = 0;
  small.maxFlows = 64;
  World world(13);
  Node& hub = world.addNode("hub", small);
  hub.callsBack = true;
  for (size_t i = 0; i < kEdges; ++i) {
    Node& edge = world.addNode("edge" + std::to_string(i), small);
    edge.poolLimit = 256;
    world.pair(edge, hub, 60s);
    world.join(edge, hub, "up" + std::to_string(i), kDsl, kDsl);
  }
  world.start();
  auto comeUp = [&](Duration within) {
    Time begun = world.now();
    while (hub.tunnel().peersUp().size() < kEdges && world.now() - begun < within) world.run(10ms);
    return world.now() - begun;
  };
  ASSERT_LT(comeUp(20s), 20s);
  world.run(5s);
  EXPECT_TRUE(hub.stop());
  world.run(kDowntime);
  hub.start();
  EXPECT_LE(comeUp(10s), 1s);
  EXPECT_EQ(hub.drops(Drop::kHandshakeLimit), 0u) << "who was here is no stranger";
  EXPECT_EQ(world.failure(), "");
}

}  // namespace
}  // namespace braid::sim::restart_test
