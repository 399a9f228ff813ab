// Two whole gateways on fake hosts, with real handshakes, in virtual time.

#include "gateway/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "gateway/proxy/tcp_proxy.h"
#include "host/fake/fake_host.h"
#include "inet/ip.h"
#include "simnet/inner_packets.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::gateway_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

constexpr int kLink = 2;  // index of the edge's uplink interface

//   LAN 10.1.0.0/24 - edge -- eth1 192.0.2.5 ---- 203.0.113.1:4433 -- hub - LAN 10.2.0.0/24
struct Site {
  Site(const FakeClock& clock, uint64_t seed) : host(clock, seed) {}

  TemporaryFolder folder;
  FakeHost host;
  Config config;
  std::unique_ptr<Gateway> gateway;

  Pin makeIdentity() {
    config.identity = {folder.file("key"), folder.file("crt")};
    return generateIdentity(config.identity.key, config.identity.certificate, "gateway");
  }
  void setUp() {
    gateway = std::make_unique<Gateway>(config, LoadOptions{}, host);
    gateway->start();
  }
  std::vector<SubflowStatus> subflows() const {
    return gateway->tunnelStatus().peers.at(0).subflows;
  }
  FakeDatagramSocket& socket() const { return *host.sockets().begin()->second; }
};

class GatewayTest : public testing::Test {
 protected:
  static constexpr Duration kDelay = 5ms;  // one way

  GatewayTest() {
    setLogLevel("error");
    Pin edgePin = edge_.makeIdentity(), hubPin = hub_.makeIdentity();
    edge_.config.device.addresses = {{sim::address("10.1.0.1"), 24}};
    edge_.config.device.routes = {*Prefix::parse("10.2.0.0/24")};
    UplinkConfig& uplink = edge_.config.uplinks.emplace_back();
    uplink.name = "dsl";
    uplink.interface = "eth1";
    uplink.gateway = UplinkConfig::Gateway::kNone;
    PeerOptions& hub = edge_.config.peers.emplace_back().options;
    hub = {.name = "hub",
           .pin = hubPin,
           .endpoints = {hubEnd_},
           .prefixes = {*Prefix::parse("10.2.0.0/24")}};
    hub_.config.listen = {*Endpoint::parse("0.0.0.0:4433")};
    PeerOptions& edge = hub_.config.peers.emplace_back().options;
    edge = {.name = "edge",
            .pin = edgePin,
            .endpoints = {},
            .prefixes = {*Prefix::parse("10.1.0.0/24")}};
    setAddresses({"192.0.2.5"});
  }
  ~GatewayTest() override { setLogLevel("info"); }

  void setAddresses(const std::vector<const char*>& addresses) {
    Link link;
    link.index = kLink;
    link.name = "eth1";
    link.up = true;
    link.mtu = 1500;
    for (const char* a : addresses)
      link.addresses.insert({sim::address(a), 24, 0, true, false, false});
    edge_.host.net().edit().setLink(link);
    edge_.host.net().changed();
  }
  void addUplink(const char* name, const char* interface, int index, const char* address) {
    UplinkConfig& uplink = edge_.config.uplinks.emplace_back();
    uplink.name = name;
    uplink.interface = interface;
    uplink.gateway = UplinkConfig::Gateway::kNone;
    Link link;
    link.index = index;
    link.name = interface;
    link.up = true;
    link.mtu = 1500;
    link.addresses.insert({sim::address(address), 24, 0, true, false, false});
    edge_.host.net().edit().setLink(link);
    edge_.host.net().changed();
  }
  // The uplinks with an active subflow.
  std::set<std::string> workingOver() const {
    std::set<std::string> out;
    for (const SubflowStatus& s : edge_.subflows()) {
      if (s.state == "active") out.insert(s.uplink);
    }
    return out;
  }
  void start() {
    edge_.setUp();
    hub_.setUp();
    run(1s);
  }

  // Runs until `whole` has passed. Datagrams take kDelay.
  void run(Duration whole) {
    Time end = clock_.now() + whole;
    while (true) {
      while (turn()) {
      }
      Time next = std::min(edge_.gateway->nextDeadline(), hub_.gateway->nextDeadline());
      if (!flying_.empty()) next = std::min(next, flying_.front().at);
      if (next > end) break;
      clock_.set(std::max(next, clock_.now()));
    }
    clock_.set(end);
  }
  bool turn() {
    bool more = edge_.gateway->runOnce();
    more |= hub_.gateway->runOnce();
    for (Site* from : {&edge_, &hub_}) {
      for (FakeDatagram& d : from->host.takeSent()) {
        if (losesHandshakes_ && isHandshakeDatagram(d.bytes)) continue;
        if (dead_ == d.from.address || dead_ == d.to.address) continue;
        flying_.push_back({clock_.now() + kDelay, from == &edge_ ? &hub_ : &edge_, std::move(d)});
      }
    }
    for (; !flying_.empty() && flying_.front().at <= clock_.now(); flying_.pop_front()) {
      more = true;
      flying_.front().to->host.deliver(flying_.front().datagram);
    }
    return more;
  }

  static sim::Bytes packet(const char* from, const char* to, size_t payload = 100) {
    return sim::udpPacket({.src = sim::address(from), .dst = sim::address(to), .protocol = 17},
                          1000, 2000, sim::Bytes(payload, 0x5a));
  }
  sim::Bytes toHub(size_t payload = 100) const { return packet("10.1.0.7", "10.2.0.9", payload); }

  struct Flying {
    Time at;
    Site* to;
    FakeDatagram datagram;
  };
  FakeClock clock_;
  Endpoint hubEnd_ = *Endpoint::parse("203.0.113.1:4433");
  Site edge_{clock_, 1}, hub_{clock_, 2};
  std::deque<Flying> flying_;
  bool losesHandshakes_ = false;  ///< the network does
  Address dead_;                  ///< nothing comes from or to it
};

// Found by review: the nanoseconds until then did not fit into 64 bits, so the daemon polled all
// the time.
TEST_F(GatewayTest, APeriodThatEndsInCenturiesIsLookedAtNowAndThen) {
  edge_.config.state = edge_.folder.file("state");
  edge_.config.uplinks[0].meter = {.cap = 1'000'000'000, .period = {}};
  std::ofstream(edge_.config.state)
      << R"({"uplinks":{"dsl":{"used":5,"until":11800000000,"period":[2,1,0]}}})";
  edge_.setUp();
  edge_.gateway->runOnce();
  EXPECT_GE(edge_.gateway->nextDeadline(), clock_.now());
  EXPECT_EQ(edge_.gateway->status().uplinks.at(0).meter->until, 11'800'000'000);
}

TEST_F(GatewayTest, WhatAnUplinkCarriedIsCountedOverRestarts) {
  edge_.config.state = edge_.folder.file("edge.state");
  start();
  auto carried = [&] { return *edge_.gateway->status().uplinks.at(0).carried; };
  const CarriedStatus before = carried();
  EXPECT_GT(before.bytes, 100u) << "the handshake";
  EXPECT_EQ(before.today, before.bytes) << "before it is written, too";
  run(15s);
  for (int i = 0; i < 10; ++i) edge_.host.device()->put(toHub(1000));
  run(1s);
  const CarriedStatus now = carried();
  EXPECT_GE(now.bytes, before.bytes + 10'000);
  EXPECT_LE(now.bytes, before.bytes + 30'000);
  EXPECT_EQ(now.today, now.bytes);
  EXPECT_EQ(now.month, now.bytes);
  edge_.gateway->stop();
  edge_.gateway.reset();
  edge_.setUp();
  EXPECT_GE(carried().today, now.today);
  EXPECT_GE(carried().month, now.month);
  EXPECT_LT(carried().bytes, now.bytes) << "since the daemon began";
}

TEST_F(GatewayTest, WhereNothingCanBeKeptTheBytesOfTheDayAreNotTold) {
  std::ofstream(edge_.folder.file("file"));
  edge_.config.state = edge_.folder.file("file/edge.state");
  start();
  EXPECT_FALSE(edge_.gateway->status().uplinks.at(0).carried);
}

TEST_F(GatewayTest, AnUplinkIsAvailableWhileAPathOverItWorks) {
  start();
  auto availability = [&] { return edge_.gateway->status().uplinks.at(0).availability; };
  EXPECT_TRUE(std::isnan(availability())) << "no look yet";
  run(25s);
  EXPECT_EQ(availability(), 1.0);
  dead_ = hubEnd_.address;
  edge_.host.device()->put(toHub());
  run(40s);
  EXPECT_GT(availability(), 0.3);
  EXPECT_LT(availability(), 0.8);
}

// Found by review: a turn read 256 datagrams of up to 48 packets from each socket and delivered 256
// packets.
TEST_F(GatewayTest, WhatDatagramsDeliverLeavesBeforeMoreIsRead) {
  start();
  for (int i = 0; i < 40; ++i) edge_.host.device()->put(toHub(20));
  edge_.gateway->runOnce();
  size_t written = 0, datagrams = 0;
  for (const FakeDatagram& d : edge_.host.takeSent()) {
    hub_.host.deliver(d);
    ++datagrams;
    written += hub_.host.device()->takeWritten().size();
    EXPECT_EQ(written, hub_.gateway->tunnelStatus().peers.at(0).innerReceivedPackets)
        << "nothing is left waiting";
  }
  EXPECT_GT(written, datagrams) << "several in a datagram";
}

// Found by review: each non-empty queue of the device was read for a whole turn.
TEST_F(GatewayTest, ATurnReadsTheDeviceOnceHoweverOftenItIsReadable) {
  constexpr size_t kTurn = 64, kAll = 300;
  start();
  uint64_t before = edge_.gateway->status().traffic.readPackets;
  for (size_t i = 0; i < kAll; ++i) edge_.host.device()->put(toHub(20));
  EXPECT_TRUE(edge_.gateway->runOnce()) << "there is more";
  EXPECT_EQ(edge_.gateway->status().traffic.readPackets, before + kTurn);
  run(1s);
  EXPECT_EQ(edge_.gateway->status().traffic.readPackets, before + kAll);
}

// A network card that merges datagrams cuts all but the first wrongly. The daemon notices, and the
// kernel merges no more.
TEST_F(GatewayTest, MergingThatDamagesDatagramsIsSwitchedOff) {
  start();
  hub_.socket().mergeBadly(4);
  auto traffic = [&] { return hub_.gateway->status().traffic; };
  for (int i = 0; i < 400 && traffic().mergingStopped == 0; ++i) {
    edge_.host.device()->put(toHub(900));
    run(10ms);
  }
  EXPECT_EQ(traffic().mergingStopped, 1u);
  EXPECT_GE(traffic().mergedDamaged, 16u);
  EXPECT_LE(traffic().mergedDamaged, 200u);
  run(2s);
  hub_.host.device()->takeWritten();
  for (int i = 0; i < 100; ++i) {
    edge_.host.device()->put(toHub(900));
    run(10ms);
  }
  EXPECT_EQ(hub_.host.device()->takeWritten().size(), 100u);
  EXPECT_EQ(traffic().mergingStopped, 1u);
}

TEST_F(GatewayTest, RemembersWhatPathsDidAndWhatHappened) {
  start();
  for (int i = 0; i < 25; ++i) {
    edge_.host.device()->put(toHub());
    run(1s);
  }
  const History& history = edge_.gateway->history();
  const History::Path* path = history.path("hub", "dsl");
  ASSERT_TRUE(path);
  ASSERT_EQ(path->steps.size(), 2u) << "one each 10 s; at the start there was no path";
  EXPECT_GE(path->steps[0].sentPackets, 9u);
  EXPECT_EQ(path->steps[1].state, "active");
  EXPECT_EQ(history.peer("hub")->steps[2].innerSentPackets, 10u);
  std::set<std::string> kinds;
  for (size_t i = 0; i < history.events().size(); ++i) kinds.insert(history.events()[i].kind);
  EXPECT_THAT(kinds, IsSupersetOf({"peer_up", "path_up"}));
  ASSERT_EQ(hub_.gateway->history().paths().size(), 1u);
  EXPECT_EQ(hub_.gateway->history().paths()[0].name, "dsl") << "as the edge calls it";
}

TEST_F(GatewayTest, ALoadTestFillsThePathAndEnds) {
  start();
  EXPECT_EQ(edge_.gateway->tunnel().loadTest().start(
                "hub", {.path = "wifi", .time = 1s, .bytes = 1'000'000}, clock_.now()),
            "there is no usable path wifi to hub");
  ASSERT_EQ(edge_.gateway->tunnel().loadTest().start(
                "hub", {.path = "dsl", .time = 1s, .bytes = 1'000'000}, clock_.now()),
            "");
  run(2s);
  EXPECT_FALSE(edge_.gateway->tunnel().loadTest().status(clock_.now()).running);
  EXPECT_GE(edge_.gateway->tunnel().loadTest().status(clock_.now()).sentBytes, 1'000'000u);
  EXPECT_GE(edge_.gateway->tunnel().loadTest().peer(clock_.now()).subflows.at(0).deliveredBytes,
            1'000'000u);
  EXPECT_TRUE(hub_.host.device()->takeWritten().empty()) << "what it sends holds nothing";
}

TEST_F(GatewayTest, PacketsOfTheDeviceCrossBothWaysAfterTheHandshake) {
  start();
  EXPECT_EQ(edge_.gateway->summary(), "1 of 1 peers up");
  EXPECT_EQ(hub_.gateway->summary(), "1 of 1 peers up");
  sim::Bytes question = toHub(), answer = packet("10.2.0.9", "10.1.0.7");
  edge_.host.device()->put(question);
  run(100ms);
  EXPECT_THAT(hub_.host.device()->takeWritten(), ElementsAre(question));
  hub_.host.device()->put(answer);
  run(100ms);
  EXPECT_THAT(edge_.host.device()->takeWritten(), ElementsAre(answer));
}

TEST_F(GatewayTest, BurstsCrossBothWaysAtOnceInOrder) {
  start();
  for (size_t round = 0; round < 20; ++round) {
    std::vector<sim::Bytes> there, back;
    for (size_t i = 0; i < 20; ++i) {
      edge_.host.device()->put(there.emplace_back(toHub(900 + i)));
      hub_.host.device()->put(back.emplace_back(packet("10.2.0.9", "10.1.0.7", 900 + i)));
    }
    run(200ms);
    ASSERT_EQ(hub_.host.device()->takeWritten(), there) << round;
    ASSERT_EQ(edge_.host.device()->takeWritten(), back) << round;
  }
}

TEST_F(GatewayTest, ASessionGetsItsKeysFromFreshHandshakesWhilePacketsCross) {
  edge_.config.tunnel.rekeyAfter = hub_.config.tunnel.rekeyAfter = 10s;
  start();
  auto peerOf = [](const Site& site) { return site.gateway->tunnelStatus().peers.at(0); };
  size_t sent = 0, atHub = 0, atEdge = 0;
  auto talk = [&](Duration whole) {
    for (Time end = clock_.now() + whole; clock_.now() < end; ++sent) {
      edge_.host.device()->put(toHub());
      hub_.host.device()->put(packet("10.2.0.9", "10.1.0.7"));
      run(20ms);
      atHub += hub_.host.device()->takeWritten().size();
      atEdge += edge_.host.device()->takeWritten().size();
    }
    EXPECT_EQ(atHub, sent);
    EXPECT_EQ(atEdge, sent);
  };
  talk(60s);
  EXPECT_GE(peerOf(edge_).keyGeneration, 5u);
  EXPECT_EQ(peerOf(edge_).keyGeneration, peerOf(hub_).keyGeneration);
  EXPECT_GE(peerOf(edge_).age, 60s) << "of one session";
  EXPECT_LE(peerOf(edge_).keyAge, 11s);
  losesHandshakes_ = true;
  talk(60s);
  EXPECT_GE(peerOf(edge_).keyAge, 50s);
  EXPECT_GE(peerOf(edge_).failedRenewals, 1u);
  EXPECT_GE(peerOf(edge_).age, 120s) << "what fails beside the session does not end it";
  losesHandshakes_ = false;
  talk(60s);
  EXPECT_LE(peerOf(edge_).keyAge, 11s);
  EXPECT_GE(peerOf(edge_).age, 180s);
}

TEST_F(GatewayTest, OwnAddressesAndNetworksAreNoPeersHoweverWideItsPrefixes) {
  hub_.config.device.addresses = {{sim::address("10.9.0.1"), 24}};
  hub_.config.device.networks = {*Prefix::parse("10.2.0.0/24")};
  hub_.config.peers.at(0).options.prefixes = {*Prefix::parse("0.0.0.0/0")};
  start();
  for (const char* own : {"10.9.0.1", "10.2.0.7"}) {
    edge_.host.device()->put(packet(own, "10.2.0.9"));
    run(100ms);
    EXPECT_THAT(hub_.host.device()->takeWritten(), IsEmpty()) << own;
  }
  sim::Bytes other = packet("10.9.0.2", "10.2.0.9");  // the tunnel's network is on both sides
  edge_.host.device()->put(other);
  run(100ms);
  EXPECT_THAT(hub_.host.device()->takeWritten(), ElementsAre(other));
}

// Found by review: such a peer had the hub's own LAN, too, and no other peer reached that.
TEST_F(GatewayTest, ALanIsReachedThoughAPeerHasEverything) {
  auto lan = [&](int index, const char* name, const char* address) {
    Link link;
    link.index = index;
    link.name = name;
    link.addresses.insert({sim::address(address), 24, 0, true, false, false});
    hub_.host.net().edit().setLink(link);
    hub_.host.net().changed();
  };
  lan(7, "lan0", "10.2.0.1");
  PeerOptions& wide = hub_.config.peers.emplace_back().options;
  wide.name = "wide";
  wide.pin[0] = 1;
  wide.prefixes = {*Prefix::parse("0.0.0.0/0")};
  edge_.config.peers.at(0).options.prefixes = {*Prefix::parse("10.0.0.0/8")};
  start();
  sim::Bytes question = toHub(), other = packet("10.1.0.7", "10.3.0.9");
  edge_.host.device()->put(question);
  edge_.host.device()->put(other);
  run(100ms);
  EXPECT_THAT(hub_.host.device()->takeWritten(), ElementsAre(question))
      << "the other is the peer's";
  lan(8, "lan1", "10.3.0.1");
  edge_.host.device()->put(other);
  run(100ms);
  EXPECT_THAT(hub_.host.device()->takeWritten(), ElementsAre(other)) << "a LAN that came later";
}

TEST_F(GatewayTest, TheHostIsConfiguredAndLeftAsItWas) {
  edge_.config.device.routes.push_back(*Prefix::parse("::/0"));
  start();
  std::string name = edge_.host.device()->name();
  EXPECT_THAT(edge_.host.net().configured(),
              IsSupersetOf({name + " up", "address 10.1.0.1/24 on " + name,
                            "route 10.2.0.0/24 dev " + name + " table 6599",
                            "route ::/0 dev " + name + " table 6599",
                            std::string("IPv4 rule 6190: not fwmark 0x40/0xe0 lookup 6599"),
                            std::string("IPv6 rule 6200: not fwmark 0x40/0xe0 lookup 6599"),
                            name + " MTU " + std::to_string(edge_.gateway->status().deviceMtu)}));
  edge_.gateway->stop();
  EXPECT_THAT(edge_.host.net().configured(), IsEmpty());
  EXPECT_THAT(edge_.host.sockets(), IsEmpty());
}

TEST_F(GatewayTest, WithoutStreamsTooItTakesAwayWhatAKilledOneLeft) {
  ASSERT_FALSE(hub_.config.tunnel.streams.on);
  hub_.setUp();
  HostNumbers numbers;
  EXPECT_THAT(hub_.host.net().staleRemovals(),
              Contains(std::pair(numbers.interceptedRule(), numbers.interceptedTable())));
}

// The killed one may have had uplinks with `gateway`, or others that this one has not.
TEST_F(GatewayTest, RoutesOfUplinksThatAKilledOneLeftAreTakenAwayEvenWhereNoneIsWanted) {
  start();
  HostNumbers numbers;
  for (Site* site : {&edge_, &hub_})
    EXPECT_THAT(site->host.net().staleTables(),
                ElementsAre(std::pair(numbers.uplinkTable(0), uint32_t{kMaxUplinks})));
}

TEST_F(GatewayTest, StoppingSaysFarewell) {
  start();
  edge_.gateway->stop();
  for (FakeDatagram& d : edge_.host.takeSent()) hub_.host.deliver(d);
  hub_.gateway->runOnce();
  EXPECT_EQ(hub_.gateway->summary(), "0 of 1 peers up");
}

TEST_F(GatewayTest, ADeletedDeviceIsTheEnd) {
  start();
  EXPECT_FALSE(edge_.gateway->failed());
  edge_.host.device()->vanish();
  EXPECT_TRUE(edge_.gateway->runOnce()) << "the driver is to look at once";
  EXPECT_TRUE(edge_.gateway->failed());
}

TEST_F(GatewayTest, ASendErrorReachesTheTunnel) {
  start();
  ASSERT_EQ(edge_.subflows().at(0).state, "active");
  edge_.socket().refuse(ENETUNREACH);
  edge_.host.device()->put(toHub());
  edge_.gateway->runOnce();
  EXPECT_EQ(edge_.subflows().at(0).state, "suspect");
  EXPECT_GT(edge_.gateway->status().drops.sendErrors, 0u);
  edge_.socket().refuse(0);
  run(5s);
  EXPECT_EQ(edge_.subflows().at(0).state, "active");
}

TEST_F(GatewayTest, ADatagramAboveTheInterfacesMtuReachesTheTunnel) {
  start();
  run(10s);  // the MTU search comes to its end
  size_t before = edge_.subflows().at(0).mtu;
  edge_.socket().setMtu(1400);
  edge_.host.device()->put(toHub(edge_.gateway->status().deviceMtu - 28));
  run(30s);
  EXPECT_GT(edge_.gateway->status().drops.tooBig, 0u);
  size_t after = edge_.subflows().at(0).mtu;
  EXPECT_LT(after, before);
  EXPECT_LE(after, 1400u) << "an IP packet";
  EXPECT_THAT(edge_.host.net().configured(),
              Contains(HasSubstr(" MTU " + std::to_string(edge_.gateway->status().deviceMtu))));
}

TEST_F(GatewayTest, AFullSendBufferHoldsDatagramsBackAndLosesNone) {
  start();
  edge_.socket().setRoom(0);
  for (int i = 0; i < 5; ++i) edge_.host.device()->put(toHub());
  run(20ms);
  EXPECT_THAT(hub_.host.device()->takeWritten(), IsEmpty());
  edge_.socket().setRoom(SIZE_MAX);
  run(20ms);
  EXPECT_EQ(hub_.host.device()->takeWritten().size(), 5u);
}

TEST_F(GatewayTest, AnUplinkIsDownWithoutItsAddressAndComesBackWithAnother) {
  start();
  setAddresses({});
  run(100ms);
  EXPECT_FALSE(edge_.gateway->status().uplinks.at(0).up);
  EXPECT_THAT(edge_.host.sockets(), IsEmpty());
  setAddresses({"192.0.2.66"});
  run(3s);
  EXPECT_TRUE(edge_.gateway->status().uplinks.at(0).up);
  edge_.host.device()->put(toHub());
  run(100ms);
  EXPECT_EQ(hub_.host.device()->takeWritten().size(), 1u);
}

TEST_F(GatewayTest, ARefusedSocketIsTriedAgain) {
  edge_.host.refuseLocal({sim::address("192.0.2.5")});
  start();
  EXPECT_EQ(edge_.gateway->peersUp(), 0u);
  edge_.host.refuseLocal({});
  run(2s);
  EXPECT_EQ(edge_.gateway->peersUp(), 1u);
}

TEST_F(GatewayTest, APeerIsReachedByItsName) {
  PeerConfig& hub = edge_.config.peers.at(0);
  hub.options.endpoints.clear();
  hub.hosts = {{"hub.example.net", 4433}};
  start();
  ASSERT_THAT(edge_.host.asked(), ElementsAre(hub.hosts.at(0)));
  edge_.host.answer(hub.hosts.at(0), {});
  EXPECT_THAT(edge_.host.asked(), IsEmpty());
  run(31s);
  ASSERT_THAT(edge_.host.asked(), ElementsAre(hub.hosts.at(0))) << "asked again after a while";
  edge_.host.answer(hub.hosts.at(0), {hubEnd_});
  run(1s);
  EXPECT_EQ(edge_.gateway->peersUp(), 1u);
  run(31s);
  EXPECT_THAT(edge_.host.asked(), IsEmpty()) << "a working peer keeps its addresses";
}

// Found by review: when the DNS resolver started later than the edge, the edge had no tunnel for
// half a minute after boot.
TEST_F(GatewayTest, ANameThatFailedIsAskedForSoonAndThenLessOften) {
  PeerConfig& hub = edge_.config.peers.at(0);
  hub.options.endpoints.clear();
  hub.hosts = {{"hub.example.net", 4433}, {"hub.example.org", 4433}};
  start();
  for (Duration pause : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
    ASSERT_THAT(edge_.host.asked(), ElementsAre(hub.hosts.at(0), hub.hosts.at(1)));
    for (const HostPort& name : hub.hosts) edge_.host.answer(name, {});
    run(pause - 50ms);
    EXPECT_THAT(edge_.host.asked(), IsEmpty());
    run(60ms);
  }
}

TEST_F(GatewayTest, OnlyAProgramOfTheHostThatIsAskedForANameAsksPastTheTunnel) {
  PeerConfig& hub = edge_.config.peers[0];
  hub.options.endpoints.clear();
  hub.hosts = {{"hub.example.net", 4433}};
  start();
  auto asksPast = [&] {
    return std::ranges::any_of(edge_.host.net().configured(), [](const std::string& line) {
      return line.find("dport 53 ") != std::string::npos;
    });
  };
  edge_.host.answer({"hub.example.net", 4433}, {});
  edge_.gateway->runOnce();
  EXPECT_FALSE(asksPast());
  edge_.host.setResolverHere(true);
  run(2s);
  edge_.host.answer({"hub.example.net", 4433}, {});
  EXPECT_TRUE(asksPast());
}

TEST_F(GatewayTest, ANameIsAskedForAgainWhenAnUplinkComesUp) {
  PeerConfig& hub = edge_.config.peers.at(0);
  hub.options.endpoints.clear();
  hub.hosts = {{"hub.example.net", 4433}};
  setAddresses({});
  start();
  run(40s);
  ASSERT_THAT(edge_.host.asked(), IsEmpty()) << "there is no way to ask on";
  setAddresses({"192.0.2.5"});
  run(1s);
  ASSERT_THAT(edge_.host.asked(), ElementsAre(hub.hosts.at(0)));
  edge_.host.answer(hub.hosts.at(0), {});
  run(1100ms);
  ASSERT_THAT(edge_.host.asked(), ElementsAre(hub.hosts.at(0)))
      << "the resolver may need a moment more";
  edge_.host.answer(hub.hosts.at(0), {hubEnd_});
  run(1s);
  EXPECT_EQ(edge_.gateway->peersUp(), 1u);
  setAddresses({"192.0.2.6"});
  run(40s);
  EXPECT_THAT(edge_.host.asked(), IsEmpty()) << "a working peer keeps its addresses";
}

// One uplink's resolver may lie (a captive portal): the other's answer is not touched by it.
TEST_F(GatewayTest, EachUplinkHasItsOwnAnswerToAName) {
  addUplink("lte", "wwan0", 3, "198.51.100.9");
  edge_.config.uplinks[0].resolvers = {sim::address("192.0.2.1")};
  edge_.config.device.markMask = 0xff00;
  PeerConfig& hub = edge_.config.peers.at(0);
  hub.options.endpoints.clear();
  hub.hosts = {{"hub.example.net", 4433}};
  const HostPort& name = hub.hosts.at(0);
  const Endpoint portal = *Endpoint::parse("10.9.9.9:9");
  start();
  ASSERT_THAT(edge_.host.askedOver(name), ElementsAre("dsl", "lte"));
  const LookupWay dsl = edge_.host.lookups()[0].first, lte = edge_.host.lookups()[1].first;
  EXPECT_EQ(dsl.interface + " " + dsl.v4.toString(), "eth1 192.0.2.5");
  EXPECT_EQ(lte.interface + " " + lte.v4.toString(), "wwan0 198.51.100.9");
  EXPECT_THAT(dsl.resolvers, ElementsAre(sim::address("192.0.2.1")));
  EXPECT_THAT(lte.resolvers, IsEmpty());
  EXPECT_EQ(dsl.mark, 0x5f00u) << "past the rules and the guard of this configuration";

  edge_.host.answer("dsl", name, {portal});
  run(1s);
  EXPECT_EQ(edge_.gateway->peersUp(), 0u);
  edge_.host.answer("lte", name, {hubEnd_});
  run(2s);
  EXPECT_EQ(edge_.gateway->peersUp(), 1u);
  EXPECT_THAT(workingOver(), ElementsAre("lte"));
  EXPECT_THAT(edge_.gateway->status().uplinks[0].resolvers, ElementsAre("192.0.2.1"));

  // Later the resolver without a working path is asked again, and the other's answer is tried.
  run(31s);
  EXPECT_THAT(edge_.host.askedOver(name), ElementsAre("dsl"));
  EXPECT_THAT(workingOver(), ElementsAre("dsl", "lte"));
  std::vector<std::string> portals;
  const Ring<PastEvent>& events = edge_.gateway->history().events();
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == "portal") portals.push_back(events[i].path + ": " + events[i].text);
  }
  EXPECT_THAT(portals, ElementsAre(HasSubstr("dsl: uplink dsl: its name servers say that "
                                             "hub.example.net is 10.9.9.9, where nobody answers")));
  edge_.host.answer("dsl", name, {portal});
  run(60s);
  EXPECT_THAT(workingOver(), ElementsAre("dsl", "lte"));
  EXPECT_THAT(edge_.host.asked(), IsEmpty()) << "working paths keep their addresses";
}

// The edge takes everything, has a LAN at lan0, and routers at both uplinks.
class PortalTest : public GatewayTest {
 protected:
  PortalTest() {
    edge_.config.device.routes = {*Prefix::parse("0.0.0.0/0")};
    edge_.config.peers[0].options.prefixes = {*Prefix::parse("0.0.0.0/0")};
    edge_.config.device.addresses = {{sim::address("10.1.0.1"), 24}};
    setAddresses({"10.66.0.2"});
    addUplink("lte", "wwan0", 3, "198.51.100.9");
    Link lan;
    lan.index = 9;
    lan.name = "lan0";
    lan.up = true;
    lan.addresses.insert({sim::address("192.168.1.1"), 24, 0, true, false, false});
    edge_.host.net().edit().setLink(lan);
    edge_.host.net().edit().addDefaultRoute(
        {Address::Family::kV4, kLink, sim::address("10.66.0.1"), 100});
    edge_.host.net().edit().addDefaultRoute(
        {Address::Family::kV4, 3, sim::address("198.51.100.1"), 200});
    edge_.host.net().changed();
  }
  void redirect() {
    edge_.host.answerPage("dsl", nobody_, 302, "http://10.66.0.1:8080/login");
    run(10ms);
  }
  std::vector<std::string> opened() const {
    std::vector<std::string> out;
    if (const PortalRules* rules = edge_.host.portals())
      for (const PortalRules::Way& way : rules->ways)
        out.push_back(way.interface + " " + way.address.toString());
    return out;
  }
  std::vector<std::string> events() const {
    std::vector<std::string> out;
    const Ring<PastEvent>& all = edge_.gateway->history().events();
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].kind == "portal") out.push_back(all[i].text);
    return out;
  }

  const Address nobody_ = sim::address("192.0.2.1");
};

TEST_F(PortalTest, ItsPageIsOpenUntilAPeerIsUp) {
  losesHandshakes_ = true;
  start();
  run(5s);
  ASSERT_EQ(edge_.host.pages().size(), 2u) << "one of each uplink";
  redirect();
  EXPECT_THAT(opened(), ElementsAre("eth1 192.0.2.1", "eth1 10.66.0.1"));
  ASSERT_NE(edge_.host.portals(), nullptr);
  EXPECT_THAT(edge_.host.portals()->from, ElementsAre("lan0"));
  UplinkStatus dsl = edge_.gateway->status().uplinks.at(0);
  EXPECT_EQ(dsl.portal, "http://10.66.0.1:8080/login");
  EXPECT_EQ(dsl.portalOpen, "TCP ports 80, 443, 8080 of 192.0.2.1, 10.66.0.1");
  EXPECT_THAT(events(), ElementsAre(HasSubstr("uplink dsl: a captive portal waits for a login at "
                                              "http://10.66.0.1:8080/login; for hosts of the "
                                              "LAN: TCP ports")));
  losesHandshakes_ = false;
  dead_ = sim::address("10.66.0.2");
  run(15s);
  ASSERT_EQ(edge_.gateway->peersUp(), 1u);
  EXPECT_THAT(opened(), ElementsAre("eth1 192.0.2.1")) << "a peer is up by the other uplink";
  EXPECT_THAT(edge_.gateway->status().uplinks.at(0).portalOpen, HasSubstr("a peer is up"));
  dead_ = {};
  run(60s);
  ASSERT_THAT(workingOver(), ElementsAre("dsl", "lte"));
  EXPECT_EQ(edge_.host.portals(), nullptr);
  EXPECT_EQ(edge_.gateway->status().uplinks.at(0).portal, "");
  EXPECT_EQ(events().size(), 2u);
}

TEST_F(PortalTest, NothingIsOpenAfterTheEnd) {
  losesHandshakes_ = true;
  start();
  run(5s);
  redirect();
  ASSERT_NE(edge_.host.portals(), nullptr);
  edge_.gateway->stop();
  EXPECT_EQ(edge_.host.portals(), nullptr);
}

// Found by review: a path that has been silent for some seconds ends to count without an event.
TEST_F(PortalTest, ALoginThatExpiresWhileAnotherUplinkWorksIsNoticed) {
  start();
  ASSERT_THAT(workingOver(), ElementsAre("dsl", "lte"));
  dead_ = sim::address("10.66.0.2");
  run(30s);
  ASSERT_EQ(edge_.gateway->peersUp(), 1u);
  ASSERT_EQ(edge_.host.pages().size(), 1u) << "the silent one is asked";
  redirect();
  EXPECT_THAT(opened(), ElementsAre("eth1 192.0.2.1"));
}

// Found by review: it stopped address translation for good, reloads, and all routes.
TEST_F(PortalTest, WhatTheHostRefusesIsTriedAgainAndStopsNothingElse) {
  losesHandshakes_ = true;
  start();
  run(5s);
  edge_.host.refusePortals(true);
  redirect();
  EXPECT_THAT(opened(), IsEmpty());
  EXPECT_THAT(edge_.gateway->status().uplinks.at(0).portalOpen, HasSubstr("nothing is opened: "));
  EXPECT_NE(edge_.gateway->status().uplinks.at(0).portal, "");
  edge_.host.refusePortals(false);
  run(12s);
  EXPECT_THAT(opened(), ElementsAre("eth1 192.0.2.1", "eth1 10.66.0.1"));
}

TEST_F(GatewayTest, AnUplinkWithoutAnAnswerTakesTheOthers) {
  addUplink("lte", "wwan0", 3, "198.51.100.9");
  PeerConfig& hub = edge_.config.peers.at(0);
  hub.options.endpoints.clear();
  hub.hosts = {{"hub.example.net", 4433}};
  const HostPort& name = hub.hosts.at(0);
  start();
  edge_.host.answer("dsl", name, {});
  edge_.host.answer("lte", name, {hubEnd_});
  run(2s);
  EXPECT_THAT(workingOver(), ElementsAre("dsl", "lte"));
  ASSERT_THAT(edge_.host.askedOver(name), ElementsAre("dsl"));
  edge_.host.answer("dsl", name, {*Endpoint::parse("10.9.9.9:9")});
  run(10s);
  EXPECT_THAT(workingOver(), ElementsAre("dsl", "lte")) << "a path that works stays";
}

TEST_F(GatewayTest, ANameWithoutAnAnswerIsAskedForWhileItsPeerIsUp) {
  PeerConfig& hub = edge_.config.peers.at(0);
  hub.hosts = {{"hub.example.net", 4433}};
  start();
  ASSERT_EQ(edge_.gateway->peersUp(), 1u);
  edge_.host.answer(hub.hosts.at(0), {});
  run(2s);
  ASSERT_THAT(edge_.host.asked(), ElementsAre(hub.hosts.at(0)));
  edge_.host.answer(hub.hosts.at(0), {*Endpoint::parse("203.0.113.2:4433")});
  run(31s);
  EXPECT_THAT(edge_.host.asked(), IsEmpty());
}

// ---------------------------------------------------------------- restarts

// The hub is killed, and its peer is silent. Only the file tells the restarted hub the edge's
// address.
TEST_F(GatewayTest, AHubThatWasKilledCallsItsPeersBack) {
  for (auto* config : {&edge_.config, &hub_.config}) config->peers.at(0).options.keepalive = 60s;
  hub_.config.state = hub_.folder.file("hub.state");
  start();
  run(20s);
  ASSERT_EQ(edge_.gateway->peersUp(), 1u);
  hub_.gateway.reset();
  hub_.setUp();
  run(500ms);
  EXPECT_EQ(edge_.gateway->summary(), "1 of 1 peers up");
  EXPECT_EQ(hub_.gateway->summary(), "1 of 1 peers up");
  edge_.host.device()->takeWritten();
  sim::Bytes question = packet("10.2.0.9", "10.1.0.7");
  hub_.host.device()->put(question);
  run(100ms);
  EXPECT_THAT(edge_.host.device()->takeWritten(), ElementsAre(question));
}

TEST_F(GatewayTest, WhoMayBeACopyLeavesItsSessionsAndBeginsAnew) {
  start();
  for (Site* site : {&edge_, &hub_}) {
    run(10s);
    ASSERT_GE(edge_.gateway->tunnelStatus().peers.at(0).age, 5s);
    site->host.breakOff("this machine was suspended for 5 s");
    run(1s);
    for (Site* each : {&edge_, &hub_}) {
      EXPECT_EQ(each->gateway->summary(), "1 of 1 peers up");
      EXPECT_LE(each->gateway->tunnelStatus().peers.at(0).age, 1s);
    }
    hub_.host.device()->takeWritten();
    sim::Bytes question = toHub();
    edge_.host.device()->put(question);
    run(100ms);
    EXPECT_THAT(hub_.host.device()->takeWritten(), ElementsAre(question));
  }
}

// Real handshakes; tests/sim/psk_test.cc has what follows from them.
TEST_F(GatewayTest, APresharedKeyIsNeededAtBothSides) {
  edge_.config.peers.at(0).options.psk = PresharedKey({1});
  hub_.config.peers.at(0).options.psk = PresharedKey({1});
  start();
  EXPECT_EQ(edge_.gateway->summary(), "1 of 1 peers up");
  edge_.gateway.reset();
  edge_.config.peers.at(0).options.psk.reset();
  edge_.setUp();
  run(5s);
  EXPECT_EQ(edge_.gateway->summary(), "0 of 1 peers up");
  for (Site* site : {&edge_, &hub_})
    EXPECT_THAT(site->gateway->tunnelStatus().peers.at(0).refusal, HasSubstr("pre-shared key"));
}

TEST_F(GatewayTest, WhereNothingCanBeKeptTheGatewayRunsAllTheSame) {
  std::ofstream(hub_.folder.file("file"));
  hub_.config.state = hub_.folder.file("file/hub.state");
  start();
  EXPECT_EQ(hub_.gateway->peersUp(), 1u);
}

TEST_F(GatewayTest, TheFolderOfWhatIsKeptIsMade) {
  hub_.config.state = hub_.folder.file("made/hub.state");
  hub_.config.peersFolder = hub_.folder.file("elsewhere/peers.d");
  edge_.config.state = edge_.folder.file("made/edge.state");
  start();
  hub_.gateway->stop();
  EXPECT_TRUE(std::filesystem::is_regular_file(hub_.folder.file("made/hub.state.initiators")));
  EXPECT_TRUE(std::filesystem::is_directory(hub_.folder.file("elsewhere")));
  EXPECT_TRUE(std::filesystem::is_regular_file(edge_.folder.file("made/edge.state")));
}

TEST_F(GatewayTest, AnEdgeKeepsNobody) {
  edge_.config.state = edge_.folder.file("edge.state");
  start();
  edge_.gateway->stop();
  EXPECT_FALSE(std::ifstream(edge_.folder.file("edge.state.initiators")).good());
}

// ---------------------------------------------------------------- faults of the host

TEST_F(GatewayTest, WhatNetlinkMissedIsTakenInLater) {
  start();
  edge_.host.net().missUntil(clock_.now() + 1s);
  setAddresses({});
  run(900ms);
  EXPECT_TRUE(edge_.gateway->status().uplinks.at(0).up) << "nothing is known of it yet";
  run(200ms);
  EXPECT_FALSE(edge_.gateway->status().uplinks.at(0).up);
}

TEST_F(GatewayTest, WhatOthersTakeAwayIsPutBack) {
  start();
  std::set<std::string> before = edge_.host.net().configured();
  for (const std::string& line : before) edge_.host.net().takeAway(line);
  edge_.host.net().changed();
  ASSERT_THAT(edge_.host.net().configured(), IsEmpty());
  run(NetworkReconciler::kSettle);
  EXPECT_EQ(edge_.host.net().configured(), before);
}

TEST_F(GatewayTest, WhoTakesAwayWithoutEndIsAnsweredLessAndLess) {
  start();
  int before = edge_.host.net().restores();
  auto takeAway = [&](Duration time) {
    for (Duration passed = 0s; passed < time; passed += 10ms) {
      edge_.host.net().takeAway("route 10.2.0.0/24 dev braid0 table 6599");
      edge_.host.net().changed();
      run(10ms);
    }
    return edge_.host.net().restores() - before;
  };
  EXPECT_EQ(takeAway(2500ms), 3) << "once a second at first";
  EXPECT_THAT(takeAway(27500ms), testing::AllOf(testing::Ge(5), testing::Le(7)));
  run(NetworkReconciler::kLongestPause);
  EXPECT_THAT(edge_.host.net().configured(), Contains("route 10.2.0.0/24 dev braid0 table 6599"));
  run(10min);
  before = edge_.host.net().restores();
  EXPECT_EQ(takeAway(1500ms), 2) << "after a calm time as before";
}

// A temporary refusal must not leave the device with a wrong MTU forever.
TEST_F(GatewayTest, ARefusedMtuIsAskedForAgain) {
  edge_.host.net().refuseMtus(1000);
  start();
  run(10s);  // the MTU search comes to its end
  EXPECT_THAT(edge_.host.net().configured(), testing::Not(Contains(HasSubstr(" MTU "))));
  edge_.host.net().refuseMtus(0);
  run(2s);
  EXPECT_THAT(edge_.host.net().configured(),
              Contains(HasSubstr(" MTU " + std::to_string(edge_.gateway->status().deviceMtu))));
}

TEST_F(GatewayTest, WhatCannotBePutBackIsTriedAgainLessAndLess) {
  start();
  int before = edge_.host.net().restores();
  edge_.host.net().refuse(true);
  edge_.host.net().takeAway("route 10.2.0.0/24 dev braid0 table 6599");
  edge_.host.net().changed();
  run(1h);
  EXPECT_THAT(edge_.host.net().restores() - before,
              testing::AllOf(testing::Ge(50), testing::Le(70)));
  edge_.host.net().refuse(false);
  run(NetworkReconciler::kLongestPause);
  EXPECT_THAT(edge_.host.net().configured(), Contains("route 10.2.0.0/24 dev braid0 table 6599"));
}

TEST_F(GatewayTest, WhatCannotBePutBackHoldsUpNothingElse) {
  const std::string route = "route 10.2.0.0/24 dev braid0 table 6599",
                    address = "address 10.1.0.1/24 on braid0";
  FakeHostNetwork& net = edge_.host.net();
  start();
  net.refuseLines({route});
  net.takeAway(route);
  net.takeAway(address);
  net.changed();
  run(NetworkReconciler::kSettle);
  EXPECT_THAT(net.configured(), Contains(address));
  EXPECT_THAT(net.configured(), testing::Not(Contains(route)));
  run(10min);  // the tries are a minute apart by now
  for (int i = 0; i < 3; ++i) {
    net.takeAway(address);
    net.changed();
    run(NetworkReconciler::kPause);
    EXPECT_THAT(net.configured(), Contains(address)) << i;
  }
  net.refuseLines({});
  run(NetworkReconciler::kLongestPause);
  EXPECT_THAT(net.configured(), Contains(route));
}

TEST_F(GatewayTest, FlowsAreListedForWhoAsksAndNotAllOfThem) {
  start();
  for (uint16_t port = 1; port <= 40; ++port) {
    edge_.host.device()->put(sim::udpPacket(
        {.src = sim::address("10.1.0.7"), .dst = sim::address("10.2.0.9"), .protocol = 17}, port,
        2000, sim::Bytes(port * 10u, 0x5a)));
    run(10ms);
  }
  PeerStatus none = edge_.gateway->tunnelStatus().peers.at(0);
  EXPECT_EQ(none.flowCount, 40u);
  EXPECT_THAT(none.flows, IsEmpty());
  PeerStatus two = edge_.gateway->tunnelStatus(2).peers.at(0);
  ASSERT_EQ(two.flows.size(), 2u);
  EXPECT_THAT(two.flows[0].name, HasSubstr(":40 "));
  EXPECT_THAT(two.flows[1].name, HasSubstr(":39 "));
  EXPECT_EQ(edge_.gateway->tunnelStatus(kListedFlows).peers.at(0).flows.size(), 40u);
}

// The device's part of a reload fails when the old listening address has already been closed.
TEST_F(GatewayTest, AReloadThatFailsNeedsNothingOfTheHostToGoBack) {
  auto write = [&](const std::string& listen, const std::string& routes) {
    std::ofstream(hub_.folder.file("hub.yaml"))
        << "identity: {key: " << hub_.config.identity.key
        << ", certificate: " << hub_.config.identity.certificate << "}\ndevice: {routes: ["
        << routes << "]}\nlisten: ['" << listen << "']\npeers: [{name: edge, pin: '"
        << formatPin(hub_.config.peers.at(0).options.pin) << "', prefixes: [10.1.0.0/16]}]\n";
  };
  write("192.0.2.1:4433", "10.1.0.0/24");
  ConfigResult first = loadConfig(hub_.folder.file("hub.yaml"));
  ASSERT_TRUE(std::holds_alternative<Config>(first))
      << std::get<ConfigErrors>(first).at(0).toString();
  hub_.config = std::get<Config>(first);
  hub_.setUp();
  hub_.host.refuseLocal({sim::address("192.0.2.1")}, EADDRINUSE);
  hub_.host.net().refuse(true);
  write("192.0.2.2:4433", "10.1.1.0/24");
  setLogLevel("off");
  EXPECT_THAT(hub_.gateway->reload(), HasSubstr("refused route 10.1.1.0/24"));
  EXPECT_THAT(hub_.gateway->status().listen, ElementsAre("192.0.2.1:4433"));
  EXPECT_EQ(hub_.host.sockets().size(), 1u);
  hub_.host.net().refuse(false);
  EXPECT_EQ(hub_.gateway->reload(), "");
  EXPECT_THAT(hub_.gateway->status().listen, ElementsAre("192.0.2.2:4433"));
  EXPECT_EQ(hub_.host.sockets().size(), 1u);
}

// The peer's session ends without an event.
TEST_F(GatewayTest, AReloadWithoutThePeerThatAnsweredLeavesTheTunnel) {
  auto write = [&](const std::string& peers) {
    std::ofstream(hub_.folder.file("hub.yaml"))
        << "identity: {key: " << hub_.config.identity.key
        << ", certificate: " << hub_.config.identity.certificate
        << "}\ndevice: {routes: [10.1.0.0/24], when-down: direct}\nlisten: ['0.0.0.0:4433']\n"
        << "state: " << hub_.folder.file("state") << "\npeers: [" << peers << "]\n";
  };
  auto isRouted = [&] {
    return hub_.host.net().configured().contains(
        "IPv4 rule 6190: not fwmark 0x40/0xe0 lookup 6599");
  };
  write("{name: edge, pin: '" + formatPin(hub_.config.peers.at(0).options.pin) +
        "', prefixes: [10.1.0.0/24]}");
  ConfigResult first = loadConfig(hub_.folder.file("hub.yaml"));
  ASSERT_TRUE(std::holds_alternative<Config>(first))
      << std::get<ConfigErrors>(first).at(0).toString();
  hub_.config = std::get<Config>(first);
  start();
  ASSERT_EQ(hub_.gateway->peersUp(), 1u);
  ASSERT_TRUE(isRouted());
  write("{name: other, pin: '" + formatPin(Pin{1}) + "', prefixes: [10.1.0.0/24]}");
  ASSERT_EQ(hub_.gateway->reload(), "");
  unsigned before = hub_.host.forgotten();
  run(TunnelWatch::kPatience + 100ms);
  EXPECT_FALSE(isRouted());
  EXPECT_EQ(hub_.host.forgotten(), before + 1) << "flows that go on get the uplinks' addresses";
}

// The rules lead into the tunnel where the new routes say, the guard keeps the new networks at the
// new uplink, and the masquerade of `direct` has the new uplink's name.
TEST_F(GatewayTest, AReloadTurnsRoutesGuardAndNamesWithIt) {
  addUplink("lte", "wwan0", 3, "198.51.100.9");
  auto write = [&](const std::string& device, const std::string& interface) {
    std::ofstream(edge_.folder.file("edge.yaml"))
        << "identity: {key: " << edge_.config.identity.key
        << ", certificate: " << edge_.config.identity.certificate << "}\ndevice: {" << device
        << "}\nuplinks: [{name: dsl, interface: " << interface << "}]\npeers: [{name: hub, pin: '"
        << formatPin(edge_.config.peers.at(0).options.pin)
        << "', endpoints: ['203.0.113.1:4433'], prefixes: [10.2.0.0/16]}]\n";
  };
  auto isConfigured = [&](const std::string& line) {
    return edge_.host.net().configured().contains(line);
  };
  const std::string rule = "IPv4 rule 6190: not fwmark 0x40/0xe0 lookup 6599";
  write("routes: [10.2.0.0/24], when-down: block", "eth1");
  ConfigResult first = loadConfig(edge_.folder.file("edge.yaml"));
  ASSERT_TRUE(std::holds_alternative<Config>(first))
      << std::get<ConfigErrors>(first).at(0).toString();
  edge_.config = std::get<Config>(first);
  start();
  ASSERT_TRUE(edge_.host.filter());
  EXPECT_THAT(edge_.host.filter()->uplinks, ElementsAre("eth1"));
  EXPECT_TRUE(isConfigured("route 10.2.0.0/24 dev braid0 table 6599"));

  write("routes: [10.2.1.0/24], when-down: block", "wwan0");
  ASSERT_EQ(edge_.gateway->reload(), "");
  EXPECT_THAT(edge_.host.filter()->uplinks, ElementsAre("wwan0"));
  EXPECT_THAT(edge_.host.filter()->guarded,
              ElementsAre(AddressRange{sim::address("10.2.1.0"), sim::address("10.2.1.255")}));
  EXPECT_FALSE(isConfigured("route 10.2.0.0/24 dev braid0 table 6599"));
  EXPECT_TRUE(isConfigured("route 10.2.1.0/24 dev braid0 table 6599"));

  run(5s);
  ASSERT_EQ(edge_.gateway->peersUp(), 1u);
  write("routes: [10.2.1.0/24], when-down: direct", "wwan0");
  ASSERT_EQ(edge_.gateway->reload(), "");
  EXPECT_FALSE(edge_.host.filter() && edge_.host.filter()->guard);
  ASSERT_TRUE(edge_.host.translation());
  EXPECT_THAT(edge_.host.translation()->uplinks, ElementsAre("wwan0"));
  EXPECT_TRUE(isConfigured(rule));
  write("routes: [10.2.1.0/24], when-down: direct", "eth9");
  ASSERT_EQ(edge_.gateway->reload(), "");
  run(TunnelWatch::kPatience + 100ms);
  EXPECT_FALSE(isConfigured(rule)) << "without an uplink nobody answers";
  EXPECT_THAT(edge_.host.translation()->uplinks, ElementsAre("eth9"));
}

// A stranger that knows the edge's pin and the port of its uplink.
TEST_F(GatewayTest, WhetherItAnswersFollowsItsConfiguration) {
  auto write = [&](const std::string& listen) {
    std::ofstream(edge_.folder.file("edge.yaml"))
        << "identity: {key: " << edge_.config.identity.key
        << ", certificate: " << edge_.config.identity.certificate << "}\n"
        << listen << "state: " << edge_.folder.file("state")
        << "\nuplinks: [{name: dsl, interface: eth1}]\npeers: [{name: hub, pin: '"
        << formatPin(edge_.config.peers.at(0).options.pin)
        << "', endpoints: ['203.0.113.1:4433'], prefixes: [10.2.0.0/16]}]\n";
  };
  write("");
  ConfigResult first = loadConfig(edge_.folder.file("edge.yaml"));
  ASSERT_TRUE(std::holds_alternative<Config>(first))
      << std::get<ConfigErrors>(first).at(0).toString();
  edge_.config = std::get<Config>(first);
  edge_.setUp();
  while (edge_.gateway->runOnce()) {
  }
  const std::vector<FakeDatagram> own = edge_.host.takeSent();
  ASSERT_FALSE(own.empty());
  const Endpoint uplink = own[0].from, stranger{sim::address("198.51.100.66"), 6666};
  DtlsProvider provider(mallory(), DtlsPair::quick());
  SecretRandom random(knownKey(66));
  PacketPool pool(2048, 4);
  const Pin pin = readPin(edge_.config.identity.certificate);
  auto isAnswered = [&] {
    ClientHandshake knock(provider, random, pin, clock_.now());
    Packet hello = pool.allocate();
    EXPECT_TRUE(knock.pollDatagram(hello));
    EXPECT_TRUE(edge_.host.deliver(
        {stranger, uplink, Ecn::kNotEct, {hello.view().begin(), hello.view().end()}}));
    while (edge_.gateway->runOnce()) {
    }
    const std::vector<FakeDatagram> sent = edge_.host.takeSent();
    return std::ranges::any_of(sent, [&](const FakeDatagram& d) { return d.to == stranger; });
  };
  auto unexpected = [&] {
    return edge_.gateway->tunnelStatus().drops[static_cast<size_t>(Drop::kHandshakeGarbage)];
  };
  EXPECT_FALSE(isAnswered());
  EXPECT_EQ(unexpected(), 1u);
  write("listen: ['0.0.0.0:4433']\n");
  ASSERT_EQ(edge_.gateway->reload(), "");
  EXPECT_TRUE(isAnswered());
  EXPECT_EQ(unexpected(), 1u);
  write("");
  ASSERT_EQ(edge_.gateway->reload(), "");
  EXPECT_FALSE(isAnswered());
  EXPECT_EQ(unexpected(), 2u);
}

// The event queue is limited; here a thousand other events are reported first.
TEST_F(GatewayTest, APeerWhoseEventWasLostIsNotTakenToBeUp) {
  for (int i = 0; i < 1100; ++i) {
    PeerOptions& none = edge_.config.peers.emplace_back().options;
    none.name = "absent" + std::to_string(i);
    none.pin[0] = static_cast<uint8_t>(i), none.pin[1] = static_cast<uint8_t>(i >> 8);
    none.endpoints = {Endpoint{hubEnd_.address, static_cast<uint16_t>(10000 + i)}};
    none.prefixes = {*Prefix::parse("172.16." + std::to_string(i / 250) + "." +
                                    std::to_string(i % 250) + "/32")};
  }
  std::rotate(edge_.config.peers.begin(), edge_.config.peers.begin() + 1, edge_.config.peers.end());
  start();
  ASSERT_EQ(edge_.gateway->peersUp(), 1u);
  clock_.advance(1h);
  for (int i = 0; i < 10; ++i) edge_.gateway->runOnce();
  ASSERT_FALSE(edge_.gateway->tunnelStatus().peers.at(1100).up);
  EXPECT_EQ(edge_.gateway->peersUp(), 0u);
}

// ---- streams

class GatewayStreamsTest : public GatewayTest {
 protected:
  GatewayStreamsTest() {
    for (Site* site : {&edge_, &hub_}) {
      site->config.tunnel.streams.on = true;
      site->config.streams.match = {{std::nullopt, 443, 443}};
    }
  }
  // A client behind the edge, and the connection that the hub opened for it.
  void join() {
    client_ = edge_.host.streams()->arrive(*Endpoint::parse("10.1.0.7:50000"),
                                           *Endpoint::parse("10.2.0.9:443"));
    run(100ms);
    ASSERT_EQ(hub_.host.streams()->opened().size(), 1u);
    server_ = hub_.host.streams()->opened()[0];
    server_->connectError = 0;
    hub_.host.streams()->tell(*server_, {.writable = true});
    run(100ms);
  }
  void say(Site& site, FakeConnection& who, const std::string& text, bool end) {
    who.toGateway += text;
    who.ended = end;
    site.host.streams()->tell(who, {.readable = true});
    run(1s);
  }

  FakeStreamHost::Connection client_, server_;
};

TEST_F(GatewayStreamsTest, ATcpConnectionCrossesAsAStreamAndEndsInOrder) {
  start();
  run(2s);  // it is looked for by time
  ASSERT_TRUE(edge_.host.streams()->taking());
  join();
  EXPECT_EQ(server_->source, client_->source);
  EXPECT_EQ(server_->destination, client_->destination);
  std::string question(100'000, 'q'), answer(1'000'000, 'a');
  say(edge_, *client_, question, true);
  EXPECT_EQ(server_->fromGateway, question);
  EXPECT_TRUE(server_->shut);
  say(hub_, *server_, answer, true);
  EXPECT_EQ(client_->fromGateway, answer);
  EXPECT_TRUE(client_->shut && client_->closed && server_->closed);
  for (Site* site : {&edge_, &hub_}) {
    EXPECT_EQ(site->gateway->status().streams.closed, 1u);
    EXPECT_EQ(site->gateway->status().streams.open, 0u);
  }
}

TEST_F(GatewayStreamsTest, AResetCrosses) {
  start();
  join();
  server_->error = ECONNRESET;
  hub_.host.streams()->tell(*server_, {.failed = true});
  run(100ms);
  EXPECT_TRUE(client_->reset);
}

TEST_F(GatewayStreamsTest, AHostThatDoesNotAnswerTimesOut) {
  start();
  run(2s);
  client_ = edge_.host.streams()->arrive(*Endpoint::parse("10.1.0.7:50000"),
                                         *Endpoint::parse("10.2.0.9:443"));
  run(100ms);
  ASSERT_EQ(hub_.host.streams()->opened().size(), 1u);
  run(TcpProxy::kConnectTime - 1s);
  EXPECT_FALSE(client_->reset);
  run(2s);
  EXPECT_TRUE(client_->reset);
  for (Site* site : {&edge_, &hub_})
    EXPECT_EQ(site->gateway->status().streams.timedOut, 1u) << "each has counted it";
}

TEST_F(GatewayStreamsTest, AHostThatFallsSilentIsTimedOutByItsConnection) {
  start();
  join();
  server_->error = ETIMEDOUT;  // the kernel's keepalive or retransmissions came to nothing
  hub_.host.streams()->tell(*server_, {.failed = true});
  run(100ms);
  EXPECT_TRUE(client_->reset);
  EXPECT_EQ(hub_.gateway->status().streams.timedOut, 1u);
}

TEST_F(GatewayStreamsTest, TheEndOfAGatewayResetsBothEnds) {
  start();
  run(2s);
  ASSERT_TRUE(edge_.host.streams()->taking());
  join();
  hub_.gateway->stop();
  run(1s);
  EXPECT_TRUE(server_->reset);
  EXPECT_TRUE(client_->reset);
  EXPECT_FALSE(edge_.host.streams()->taking()) << "without the peer all stay packets";
}

// Found by review: the near gateway was told only of max-streams-per-peer, and connections beyond
// max-connections were reset.
TEST_F(GatewayStreamsTest, APeerOpensNoMoreStreamsThanThereMayBeConnections) {
  hub_.config.streams.most = 4;  // of few, half are for what the peer does not know yet
  start();
  run(2s);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(edge_.host.streams()->taking()) << i;
    edge_.host.streams()->arrive(*Endpoint::parse("10.1.0.7:" + std::to_string(50'000 + i)),
                                 *Endpoint::parse("10.2.0.9:443"));
    run(1s);
  }
  EXPECT_FALSE(edge_.host.streams()->taking()) << "the next one stays packets";
  EXPECT_EQ(hub_.host.streams()->opened().size(), 2u);
  EXPECT_EQ(hub_.gateway->status().streams.refusedHere, 0u);
}

// Each connection sends a request in the segment after its handshake, gets an answer of one
// segment, and closes in order.
TEST_F(GatewayStreamsTest, TenThousandConnectionsASecondAreAllAnsweredInTime) {
  constexpr size_t kCount = 10'000, kAtOnce = 10;
  constexpr size_t kFirst = 500;  // while the path's rate is being learned
  constexpr Duration kTogether = 1ms, kAnswered = 2 * kDelay + 10ms, kWarming = 8 * kDelay;
  const std::string question(300, 'q'), answer(1000, 'a');
  for (Site* site : {&edge_, &hub_}) site->config.tunnel.streams.newPerSecond = 2 * kCount;
  start();
  run(2s);
  ASSERT_TRUE(edge_.host.streams()->taking());
  std::vector<std::pair<FakeStreamHost::Connection, Time>> clients;
  size_t answered = 0, late = 0;
  auto serve = [&] {
    for (const FakeStreamHost::Connection& server : hub_.host.streams()->takeOpened()) {
      server->connectError = 0;
      server->toGateway = answer;
      server->ended = true;
      hub_.host.streams()->tell(*server, {.readable = true, .writable = true});
    }
    for (; answered < clients.size() && clients[answered].first->shut; ++answered)
      late += clock_.now() - clients[answered].second > (answered < kFirst ? kWarming : kAnswered);
  };
  const Time end = clock_.now() + kCount / kAtOnce * kTogether;
  for (size_t n = 0; n < kCount; n += kAtOnce) {
    for (size_t i = n; i < n + kAtOnce; ++i) {
      const std::string port = std::to_string(20'000 + i);
      auto client = edge_.host.streams()->arrive(*Endpoint::parse("10.1.0.7:" + port),
                                                 *Endpoint::parse("10.2.0.9:443"));
      client->toGateway = question;
      client->ended = true;
      edge_.host.streams()->tell(*client, {.readable = true});
      clients.emplace_back(std::move(client), clock_.now());
    }
    run(kTogether);
    serve();
  }
  ASSERT_EQ(clock_.now(), end);
  for (int i = 0; i < 50; ++i) {
    run(kTogether);
    serve();
  }
  EXPECT_EQ(answered, kCount);
  EXPECT_EQ(late, 0u);
  for (const auto& [client, began] : clients) ASSERT_EQ(client->fromGateway, answer);
  for (Site* site : {&edge_, &hub_}) {
    const StreamFigures figures = site->gateway->status().streams;
    EXPECT_EQ(figures.closed, kCount);
    EXPECT_EQ(figures.open, 0u);
  }
}

TEST_F(GatewayStreamsTest, WhatAKilledOneLeftIsTakenAwayOnce) {
  start();
  run(2s);
  ASSERT_TRUE(edge_.host.streams()->taking());
  HostNumbers numbers;
  EXPECT_EQ(edge_.host.net().staleRemovals().count(
                {numbers.interceptedRule(), numbers.interceptedTable()}),
            1u);
}

TEST_F(GatewayStreamsTest, AHostThatCannotCarriesPackets) {
  hub_.host.refuseStreams(true);
  start();
  run(2s);
  EXPECT_FALSE(edge_.host.streams()->taking());
  EXPECT_FALSE(hub_.gateway->status().streams.on);
}

// `streams.connect: first`: a client's SYN comes out of the edge's device.
class GatewayFirstTest : public GatewayStreamsTest {
 protected:
  GatewayFirstTest() { edge_.config.streams.connect = StreamsConfig::Connect::kFirst; }
  void knock() {
    const Endpoint client = *Endpoint::parse("10.1.0.7:50000");
    const Endpoint server = *Endpoint::parse("10.2.0.9:443");
    start();
    run(2s);
    for (Site* site : {&edge_, &hub_}) site->host.device()->takeWritten();
    edge_.host.streams()->letThrough(client, server);
    syn_ = sim::tcpPacket({client.address, server.address, ip::kTcp}, {.sport = client.port,
                                                                       .dport = server.port,
                                                                       .seq = 7,
                                                                       .flags = TcpFields::kSyn,
                                                                       .window = 1000});
    edge_.host.device()->put(syn_);
    run(kDelay + 1ms);
  }
  void answer(int error) {
    ASSERT_EQ(hub_.host.streams()->opened().size(), 1u);
    const FakeStreamHost::Connection& server = hub_.host.streams()->opened()[0];
    server->connectError = error;
    hub_.host.streams()->tell(*server, {.writable = error == 0, .failed = error != 0});
    run(kDelay + 1ms);
  }
  sim::Bytes syn_;
};

TEST_F(GatewayFirstTest, TheServersWordTakesARoundTripAndThenTheClientIsAccepted) {
  knock();
  EXPECT_TRUE(edge_.host.streams()->takeGivenBack().empty());
  answer(0);
  EXPECT_THAT(edge_.host.streams()->takeGivenBack(), ElementsAre(syn_));
  client_ = edge_.host.streams()->arrive(*Endpoint::parse("10.1.0.7:50000"),
                                         *Endpoint::parse("10.2.0.9:443"));
  say(edge_, *client_, "question", false);
  EXPECT_EQ(hub_.host.streams()->opened().at(0)->fromGateway, "question");
  EXPECT_TRUE(edge_.host.device()->takeWritten().empty());
  EXPECT_TRUE(hub_.host.device()->takeWritten().empty()) << "no packet has crossed";
}

TEST_F(GatewayFirstTest, ARefusalIsWrittenToTheDevice) {
  knock();
  answer(ECONNREFUSED);
  auto written = edge_.host.device()->takeWritten();
  ASSERT_EQ(written.size(), 1u);
  std::optional<InnerPacket> ip = parseInnerPacket(written[0]);
  ASSERT_TRUE(ip && ip->tcp);
  EXPECT_EQ(ip->flowKey(), parseInnerPacket(syn_)->flowKey().reversed());
  EXPECT_TRUE(ip->tcp->isRst());
  EXPECT_EQ(ip->tcp->ack, 8u);
  EXPECT_TRUE(edge_.host.streams()->takeGivenBack().empty());
  EXPECT_EQ(edge_.gateway->status().streams.declined, 1u);
}

TEST_F(GatewayFirstTest, WhatIsForbiddenToStreamsCrossesAsAPacket) {
  hub_.config.streams.accept = {{*Prefix::parse("10.2.0.10/32"), 443, 443}};
  knock();
  run(2 * kDelay);
  EXPECT_TRUE(hub_.host.streams()->opened().empty());
  EXPECT_THAT(hub_.host.device()->takeWritten(), testing::SizeIs(1));
  EXPECT_TRUE(edge_.host.device()->takeWritten().empty());
}

}  // namespace
}  // namespace braid::gateway_test
