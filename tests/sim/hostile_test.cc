// Strangers, forgers and peers that break the rules: each bad datagram is counted under the right
// drop cause.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/wire/header.h"

namespace braid::sim::hostile_test {
namespace {

struct Hostile : testing::Test {
  Scenario s{1};
  std::vector<Bytes> captured;
  Route stranger{1, address("203.0.113.2"), *Endpoint::parse("192.0.2.66:6666")};
  Route edge;

  void SetUp() override {
    s.path("dsl", kDsl);
    s.world.onWire = [&](Path&, bool up, const WireDatagram& d) {
      if (up && isSessionDatagram(d.bytes)) captured.push_back(d.bytes);
    };
    s.start();
    s.call({.count = 20});
    s.run(2s);
    ASSERT_GT(captured.size(), 20u);
    edge = {1, address("203.0.113.2"), s.world.path("dsl").outside()};
  }
  uint64_t drops(Drop cause) { return s.hub.drops(cause); }
  /// By how much a datagram increases the drop counter of this cause.
  uint64_t counts(Drop cause, const Route& from, const Bytes& bytes) {
    uint64_t before = drops(cause);
    s.world.inject(s.hub, from, bytes);
    s.run(1ms);
    return drops(cause) - before;
  }
};

TEST_F(Hostile, ReplaysFromAnywhere) {
  for (const Bytes& b : captured) EXPECT_EQ(counts(Drop::kReplay, edge, b), 1u);
  for (const Bytes& b : captured) EXPECT_EQ(counts(Drop::kReplay, stranger, b), 1u);
  EXPECT_EQ(s.hub.countEvents(Event::Kind::kAddressChanged), 0u);
}

TEST_F(Hostile, EveryBitIsGuarded) {
  const Bytes& original = captured.back();
  for (size_t bit = 0; bit < original.size() * 8; ++bit) {
    Bytes b = original;
    b[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    uint64_t delivered = s.hub.status().peers[0].innerReceivedPackets;
    TunnelStatus before = s.hub.status();
    s.world.inject(s.hub, edge, b);
    TunnelStatus after = s.hub.status();
    uint64_t sum = 0;
    for (size_t i = 0; i < kDropCount; ++i) sum += after.drops[i] - before.drops[i];
    EXPECT_EQ(sum, 1u) << "bit " << bit;
    EXPECT_EQ(s.hub.status().peers[0].innerReceivedPackets, delivered);
  }
}

TEST_F(Hostile, TruncatedRuntUnknown) {
  RecordProperty("rule", "header.size header.type header.session");
  const Bytes& original = captured.back();
  for (size_t n = 0; n < kMinDatagram; ++n) {
    Bytes b(original.begin(), original.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_EQ(counts(Drop::kRuntDatagram, edge, b), 1u) << n;
  }
  Bytes cut = original;
  cut[9] += 100;  // a packet number not used before
  cut.resize(cut.size() - 1);
  EXPECT_EQ(counts(Drop::kBadSeal, edge, cut), 1u);
  Bytes unknown = original;
  unknown[1] ^= 0x55;
  EXPECT_EQ(counts(Drop::kUnknownSession, edge, unknown), 1u);
  Bytes type(100, 0xff);
  EXPECT_EQ(counts(Drop::kUnknownType, edge, type), 1u);
  Bytes garbage(100, 0x20);
  EXPECT_EQ(counts(Drop::kHandshakeSeal, stranger, garbage), 1u);
}

TEST_F(Hostile, ACapturedDatagramThatNeverArrivedMovesNobody) {
  // The edge's next datagram is delayed and sent from elsewhere first: validation must bring the
  // route back.
  Bytes stolen;
  s.world.onWire = [&](Path& path, bool up, const WireDatagram& d) {
    if (up && stolen.empty() && isSessionDatagram(d.bytes)) {
      stolen = d.bytes;
      path.changeUp([](LinkOptions& o) { o.loss = 1; }, s.world.now());
    } else if (up) {
      path.changeUp([](LinkOptions& o) { o.loss = 0; }, s.world.now());
    }
  };
  UdpFlow& call = s.call({.count = 100});
  s.run(5ms);
  ASSERT_FALSE(stolen.empty());
  s.world.inject(s.hub, stranger, stolen);
  uint64_t toStranger = s.world.unroutable();
  s.run(3s);
  EXPECT_EQ(s.hub.countEvents(Event::Kind::kAddressChanged), 0u);
  EXPECT_GE(call.received(), 99u);
  // The attacker gets one or a few challenges, never more than three times the bytes it sent, and
  // no data.
  EXPECT_LE(s.world.unroutable() - toStranger, 8u);
}

TEST_F(Hostile, AForeignInnerSourceIsDropped) {
  RecordProperty("rule", "data.source");
  IpFields ip{address("10.77.0.1"), s.hub.host(), 17, Ecn::kNotEct, true};
  s.edge.send(udpPacket(ip, 1, 2, Bytes(20)));
  ip.src = address("10.2.0.9");  // behind the hub itself
  s.edge.send(udpPacket(ip, 1, 2, Bytes(20)));
  s.run(1s);
  EXPECT_EQ(drops(Drop::kForeignSource), 2u);
  EXPECT_EQ(s.hub.unclaimed, 0u);
}

TEST_F(Hostile, TheNetworksOfThisSideAreNoPeersHoweverWideItsPrefixes) {
  s.hub.peers[0].prefixes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("10.2.77.0/24")};
  s.hub.tunnel().setPeers(s.hub.peers, s.world.now());
  s.hub.tunnel().setLocalNetworks(
      {*Prefix::parse("10.2.0.0/16"), *Prefix::parse("198.51.100.1/32")});
  auto refused = [&](const char* from) {
    uint64_t before = drops(Drop::kForeignSource);
    IpFields ip{address(from), s.hub.host(), 17, Ecn::kNotEct, true};
    s.edge.send(udpPacket(ip, 1, 2, Bytes(20)));
    s.run(100ms);
    return drops(Drop::kForeignSource) - before;
  };
  EXPECT_EQ(refused("10.2.0.9"), 1u);
  EXPECT_EQ(refused("198.51.100.1"), 1u);
  EXPECT_EQ(refused("198.51.100.2"), 0u);
  EXPECT_EQ(refused("10.2.77.9"), 0u) << "a longer prefix is the peer's own";
  EXPECT_EQ(s.hub.unclaimed, 2u);

  uint64_t before = drops(Drop::kNoPeer);
  IpFields ip{s.hub.host(), address("10.2.0.9"), 17, Ecn::kNotEct, true};
  s.hub.send(udpPacket(ip, 1, 2, Bytes(20)));
  EXPECT_EQ(drops(Drop::kNoPeer) - before, 1u) << "nor does anything for them go there";
}

TEST_F(Hostile, NoPacketReachesASpecialDestinationThatNoNetworkNames) {
  RecordProperty("rule", "data.destination");
  s.edge.peers[0].prefixes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
  s.edge.tunnel().setPeers(s.edge.peers, s.world.now());
  s.hub.peers[0].prefixes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
  s.hub.tunnel().setPeers(s.hub.peers, s.world.now());
  auto refused = [&](const char* to) {
    uint64_t before = drops(Drop::kSpecialDestination);
    Address destination = address(to);
    IpFields ip{destination.isV4() ? s.edge.host() : address("2001:db8::7"), destination, 17,
                Ecn::kNotEct, true};
    s.edge.send(udpPacket(ip, 1, 2, Bytes(20)));
    s.run(100ms);
    return drops(Drop::kSpecialDestination) - before;
  };
  for (const char* to :
       {"169.254.169.254", "169.254.7.7", "127.0.0.1", "224.0.0.251", "255.255.255.255",
        "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fe80::1", "ff02::1", "::1",
        "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1"})
    EXPECT_EQ(refused(to), 1u) << to;
  EXPECT_EQ(s.hub.unclaimed, 0u);
  for (const char* to : {"203.0.113.1", "2001:db8::1"}) EXPECT_EQ(refused(to), 0u) << to;
  EXPECT_EQ(s.hub.unclaimed, 2u);

  // The range is allowed only by a configured network (of this side or a peer) that is at least as
  // narrow.
  s.hub.tunnel().setLocalNetworks({*Prefix::parse("169.254.0.0/16"), *Prefix::parse("127.0.0.0/8"),
                                   *Prefix::parse("fd00:ec2::254/128"),
                                   *Prefix::parse("168.63.0.0/16"), *Prefix::parse("fd00::/16"),
                                   *Prefix::parse("224.0.0.5/32")});
  s.hub.peers[0].prefixes.push_back(*Prefix::parse("100.100.100.200/32"));
  s.hub.tunnel().setPeers(s.hub.peers, s.world.now());
  for (const char* to : {"169.254.7.7", "fd00:ec2::254", "224.0.0.5", "100.100.100.200"})
    EXPECT_EQ(refused(to), 0u) << to;
  for (const char* to :
       {"169.254.169.254", "127.0.0.1", "168.63.129.16", "fd00:ec2::253", "224.0.0.6"})
    EXPECT_EQ(refused(to), 1u) << to;
}

TEST_F(Hostile, NoRouteIsAnswered) {
  IpFields ip{s.edge.host(), address("192.0.2.1"), 17, Ecn::kNotEct, true};
  s.edge.send(udpPacket(ip, 1, 2, Bytes(20)));
  s.run(100ms);
  EXPECT_EQ(s.edge.drops(Drop::kNoPeer), 1u);
  EXPECT_EQ(s.edge.strays.size(), 1u);
}

// An attacker that knows the concentrator's pin floods it with hellos.
TEST_F(Hostile, AFloodOfHellosCostsNothingAndBlocksNobody) {
  FakeHandshakeProvider attacker(pinOf(66), 66);
  SecretRandom drawn(knownKey(66));
  PacketPool pool(2048, 16);
  uint64_t sent = s.hub.sentBytes;
  uint64_t injected = 0;
  for (int i = 0; i < 20000; ++i) {
    ClientHandshake h(attacker, drawn, pinOf(2), s.world.now());
    Packet hello = pool.allocate();
    ASSERT_TRUE(h.pollDatagram(hello));
    Route from = stranger;
    from.remote.port = static_cast<uint16_t>(1 + i);
    injected += hello.size();
    s.world.inject(s.hub, from, hello.view());
    if (i % 100 == 0) s.run(1ms);
  }
  s.run(1s);
  EXPECT_EQ(s.hub.status().handshakes, 1u) << "only the edge's own";
  EXPECT_LE(s.hub.sentBytes - sent, injected);
  EXPECT_LE(s.hub.pool().inUse(), 300u);
  EXPECT_TRUE(s.edge.stop());
  s.edge.start();
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 2s));
}

// An edge that only begins sessions itself is silent to an attacker with its pin, and misses
// nothing: its keys are renewed, and it comes back after a restart of either side.
TEST(HostileToAnEdge, WhoKnowsThePinGetsNoAnswerWhereNobodyListens) {
  TunnelOptions options;
  options.rekeyAfter = 10s;
  Scenario s(3, options);
  s.path("dsl", kDsl);
  s.hub.callsBack = true;
  s.start();
  s.edge.tunnel().setListening(false);
  FakeHandshakeProvider attacker(pinOf(66), 66);
  SecretRandom drawn(knownKey(66));
  PacketPool pool(2048, 16);
  Route from{s.world.path("dsl").near().socket, {}, *Endpoint::parse("192.0.2.66:6666")};
  auto knock = [&](uint16_t times) {
    for (uint16_t i = 0; i < times; ++i) {
      ClientHandshake h(attacker, drawn, pinOf(1), s.world.now());
      Packet hello = pool.allocate();
      ASSERT_TRUE(h.pollDatagram(hello));
      s.world.inject(s.edge, from, hello.view());
      s.run(10ms);
    }
  };
  knock(100);
  EXPECT_EQ(s.edge.drops(Drop::kHandshakeGarbage), 100u);
  EXPECT_EQ(s.world.unroutable(), 0u) << "datagrams to the attacker";
  s.run(25s);
  EXPECT_GE(s.edge.status().peers.at(0).keyGeneration, 2u);
  EXPECT_TRUE(s.hub.stop());
  s.run(2s);
  s.hub.start();
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 2s)) << s.report();
  EXPECT_TRUE(s.edge.stop());
  s.edge.start();
  s.edge.tunnel().setListening(false);
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 2s)) << s.report();
  EXPECT_EQ(s.world.unroutable(), 0u);
}

// An attacker that does not know the pin never gets an answer, whether it sends noise, recorded
// datagrams or changed ones.
TEST_F(Hostile, AStrangerGetsNoAnswer) {
  std::vector<Bytes> overheard;
  s.world.onWire = [&](Path&, bool, const WireDatagram& d) { overheard.push_back(d.bytes); };
  ASSERT_TRUE(s.edge.stop());
  s.edge.start();
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 5s));
  s.run(1s);
  s.world.onWire = nullptr;
  ASSERT_TRUE(
      std::ranges::any_of(overheard, [](const Bytes& b) { return isHandshakeDatagram(b); }));
  FakeHandshakeProvider attacker(pinOf(66), 66);
  SecretRandom drawn(knownKey(66));
  PacketPool pool(2048, 16);
  Random random(1);
  uint64_t unroutable = s.world.unroutable();
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = overheard[random.below(overheard.size())];
    if (i % 3 == 1) bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1 << random.below(8));
    if (i % 3 == 2) {
      ClientHandshake guesses(attacker, drawn, pinOf(67), s.world.now());
      Packet hello = pool.allocate();
      ASSERT_TRUE(guesses.pollDatagram(hello));
      bytes.assign(hello.view().begin(), hello.view().end());
    }
    s.world.inject(s.hub, stranger, bytes);
    if (i % 100 == 0) s.run(1ms);
  }
  s.run(1s);
  EXPECT_EQ(s.world.unroutable(), unroutable) << "datagrams to the stranger";
}

}  // namespace
}  // namespace braid::sim::hostile_test
