#include "tunnel/tunnel.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"
#include "tests/unit/tunnel/peer/puppets.h"

namespace braid::tunnel_test {
namespace {

struct TunnelTest : testing::Test {
  PacketPool pool{2048, 256};
  test::PuppetProvider handshakes;  ///< each sends one message and then waits forever
  test::Knocker knocker{handshakes.pin};
  Tunnel tunnel{{}, pool, handshakes, knownKey(1)};
  Time now = Time{} + 1s;

  TunnelTest() { handshakes.toSend = 1; }
  void put(const Route& from, ByteView bytes) {
    tunnel.onDatagram(from, Ecn::kNotEct, pool.copy(bytes), now);
  }
  /// Begins a handshake: a hello, and another one with the cookie that the responder sent.
  void hello(const std::string& from, uint16_t port) {
    Route route{1, {}, {*Address::parse(from), port}};
    knocker.header = {};
    put(route, knocker.datagram(test::Knocker::hello()));
    for (Datagram d; tunnel.pollDatagram(d, now);) knocker.takeCookie(d.bytes.span());
    put(route, knocker.datagram(test::Knocker::hello()));
  }
  size_t drain() {
    size_t n = 0;
    for (Datagram d; tunnel.pollDatagram(d, now); ++n) {
    }
    return n;
  }
};

TEST_F(TunnelTest, OneStrangerDoesNotTakeAllHandshakes) {
  for (const char* host : {"192.0.2.66", "2001:db8::66"}) {
    for (uint16_t port = 1; port <= 1000; ++port) hello(host, port);
  }
  // all addresses are of one link
  for (int i = 1; i < 1000; ++i) hello("2001:db8::" + std::to_string(i), 1);
  EXPECT_LE(handshakes.made.size(), 64u) << "nor is he worth the work of more";
  uint64_t before = tunnel.status(now).handshakes;
  now += 1s;
  hello("198.51.100.1", 40000);
  hello("2001:db8:0:1::1", 40000);
  EXPECT_EQ(tunnel.status(now).handshakes, before + 2);
}

// A stranger that knows the pin of an edge must not learn where the edge is.
TEST_F(TunnelTest, AGatewayThatDoesNotListenAnswersNoHandshake) {
  RecordProperty("rule", "handshake.listen");
  Route route{1, {}, {*Address::parse("192.0.2.66"), 1}};
  auto unexpected = [&] {
    return tunnel.status(now).drops[static_cast<size_t>(Drop::kHandshakeGarbage)];
  };
  tunnel.setListening(false);
  put(route, knocker.datagram(test::Knocker::hello()));
  EXPECT_EQ(drain(), 0u);
  EXPECT_EQ(unexpected(), 1u);
  tunnel.setListening(true);
  hello("192.0.2.66", 1);
  EXPECT_EQ(handshakes.made.size(), 1u);
  EXPECT_EQ(tunnel.status(now).handshakes, 1u);
  tunnel.setListening(false);
  EXPECT_EQ(drain(), 0u) << "not even what was to be sent";
  EXPECT_EQ(tunnel.status(now).handshakes, 0u);
  put(route, knocker.datagram(test::Knocker::record(16)));
  put(route, knocker.datagram(test::Knocker::hello()));
  EXPECT_EQ(unexpected(), 3u) << "neither a handshake that ran, nor one with a good cookie";
  tunnel.onTimer(now += 1min);
  EXPECT_EQ(drain(), 0u);
}

// The file of known initiators may come from another configuration, so its entries are checked.
TEST_F(TunnelTest, OnlyPeersThatMustComeToUsAreCalledBack) {
  std::vector<PeerOptions> peers(2);
  peers[0].name = "comes";
  peers[0].pin = {1};
  peers[1].name = "is called";
  peers[1].pin = {2};
  peers[1].endpoints = {*Endpoint::parse("192.0.2.2:4433")};
  tunnel.setPeers(peers, now);
  std::vector<KnownInitiator> initiators(3);
  for (uint8_t i = 0; i < 3; ++i) {
    initiators[i].pin = {static_cast<uint8_t>(i + 1)};
    initiators[i].routes = {
        {1, {}, {*Address::parse("198.51.100.1"), static_cast<uint16_t>(1000 + i)}}};
  }
  tunnel.sendRestartNotices(initiators, now);
  now += 1s;
  std::vector<Route> called;
  for (Datagram d; tunnel.pollDatagram(d, now);) {
    EXPECT_TRUE(isRestartNotice(d.bytes.view()));
    called.push_back(d.route);
  }
  EXPECT_EQ(called, initiators[0].routes);
}

/// An unreachable peer, and packets for hosts behind it.
struct AwayPeerTest : TunnelTest {
  AwayPeerTest() {
    PeerOptions peer;
    peer.name = "away";
    peer.pin = {1};
    peer.prefixes = {*Prefix::parse("10.9.0.0/16")};
    tunnel.setPeers({peer}, now);
  }
  void send(int count) {
    for (int i = 0; i < count; ++i) {
      test::Bytes packet = test::v4({.src = "10.1.0.1", .dst = "10.9.0.1"},
                                    test::udp(1000, 2000, test::pattern(100)));
      tunnel.onInnerPacket(pool.copy(packet), now);
    }
  }
  size_t answers() {
    size_t n = 0;
    for (Packet p; tunnel.pollInnerPacket(p); ++n) {
      std::optional<InnerPacket> ip = parseInnerPacket(p.view());
      EXPECT_TRUE(ip && ip->protocol == ip::kIcmp);
    }
    return n;
  }
  void sleep(Duration d) {
    for (Time end = now + d; now < end;) {
      drain();
      now = std::min(end, std::max(now + 1ms, tunnel.nextDeadline()));
      tunnel.onTimer(now);
    }
  }
};

// A peer that is not up may be restarting. So packets to it first wait for a short time.
TEST_F(AwayPeerTest, IsWaitedForAtFirstAndThenTheHostIsTold) {
  send(1);
  EXPECT_EQ(answers(), 0u);
  sleep(StagedPackets::kMaxWait - 10ms);
  send(1);
  EXPECT_EQ(answers(), 0u);
  sleep(20ms);
  EXPECT_EQ(answers(), 2u);
  EXPECT_EQ(tunnel.status(now).drops[static_cast<size_t>(Drop::kPeerDown)], 2u);
  send(1);
  EXPECT_EQ(answers(), 1u) << "at once";
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST_F(TunnelTest, ADatagramOfAnotherHeaderVersionIsDropped) {
  RecordProperty("rule", "header.version");
  for (uint8_t version = 0; version < 4; ++version) {
    std::array<uint8_t, kMinDatagram> bytes{};
    writeHeader({.version = version}, bytes.data());
    put({1, {}, {*Address::parse("192.0.2.1"), 4433}}, bytes);
  }
  DropCounts drops = tunnel.status(now).drops;
  EXPECT_EQ(drops[static_cast<size_t>(Drop::kUnknownVersion)], 3u);
  EXPECT_EQ(drops[static_cast<size_t>(Drop::kUnknownSession)], 1u) << "version 0";
}

TEST_F(TunnelTest, HandshakesWithNothingToSayAreNotAskedForEachDatagram) {
  for (int i = 1; i <= 100; ++i) hello("192.0.2." + std::to_string(i), 1);
  drain();
  auto polls = [&] {
    int sum = 0;
    for (const test::PuppetHandshake* h : handshakes.made) sum += h->polls;
    return sum;
  };
  int before = polls();
  for (int i = 0; i < 100; ++i) drain();
  EXPECT_EQ(polls(), before);
  hello("192.0.2.101", 1);
  EXPECT_EQ(drain(), 1u);
}

}  // namespace
}  // namespace braid::tunnel_test
