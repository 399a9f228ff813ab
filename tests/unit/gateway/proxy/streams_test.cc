// The stream proxy's ends on a fake host, joined by streams without a tunnel: one gateway is both
// the near and the far one.

#include "gateway/network/route_plan.h"
#include "gateway/proxy/tcp_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <initializer_list>
#include <string>

#include "host/fake/fake_host.h"
#include "tests/unit/gateway/loop_lanes.h"

namespace braid::gateway_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Connection = FakeStreamHost::Connection;

Endpoint end(const char* text) {
  return *Endpoint::parse(text);
}

class StreamsTest : public testing::Test {
 protected:
  StreamsTest() {
    setLogLevel("error");
    config_.tunnel.streams.on = true;
    config_.streams.match = {{std::nullopt, 443, 443}};
    PeerOptions& peer = config_.peers.emplace_back().options;
    peer.name = "hub";
    peer.prefixes = {*Prefix::parse("10.2.0.0/24"), *Prefix::parse("fd02::/64")};
  }
  ~StreamsTest() override { setLogLevel("info"); }

  void start() {
    streams_ = std::make_unique<TcpProxy>(host_, host_.net(), "braid0", lanes_, pool_, log_);
    configure();
  }
  void configure() {
    streams_->configure(config_, interfacesOf(config_.uplinks, host_.net().table()), {},
                        clock_.now());
  }
  FakeStreamHost& tcp() { return *host_.streams(); }
  /// A route makes all addresses of these networks local to the gateway's host.
  void setLocal(std::initializer_list<const char*> networks) {
    for (const char* network : networks)
      host_.net().edit().addLocalNetwork({*Prefix::parse(network), RT_TABLE_LOCAL, 0, 1});
    host_.net().process(clock_.now());
  }
  void settle() {
    while (streams_->turn(clock_.now())) {
    }
  }
  void wait(Duration time) {
    clock_.advance(time);
    settle();
  }
  Connection arrive(uint16_t port = 50'000) {
    Connection client = tcp().arrive({end("10.1.0.7:0").address, port}, server_);
    settle();
    return client;
  }
  void answer(const Connection& server, int error = 0) {
    server->connectError = error;
    tcp().tell(*server, {.writable = error == 0, .failed = error != 0});
    settle();
  }
  // A client and its server, joined.
  std::pair<Connection, Connection> join(uint16_t port = 50'000) {
    Connection client = arrive(port);
    Connection server = tcp().opened().back();
    answer(server);
    return {client, server};
  }
  void say(const Connection& who, const std::string& text, bool end = false) {
    who->toGateway += text;
    who->ended |= end;
    tcp().tell(*who, {.readable = true});
    settle();
  }

  Endpoint server_ = end("10.2.0.9:443");
  FakeClock clock_;
  FakeHost host_{clock_, 1};
  LogLimiter log_;
  PacketPool pool_{2048, 64};
  LoopLanes lanes_;
  Config config_;
  std::unique_ptr<TcpProxy> streams_;
};

TEST_F(StreamsTest, BytesCrossBothWays) {
  start();
  auto [client, server] = join();
  EXPECT_EQ(server->source, end("10.1.0.7:50000"));
  EXPECT_EQ(server->destination, server_);
  say(client, "question");
  EXPECT_EQ(server->fromGateway, "question");
  say(server, "answer");
  EXPECT_EQ(client->fromGateway, "answer");
}

TEST_F(StreamsTest, OnlyConnectionsOfTheLansAreTakenOver) {
  config_.device.networks = {*Prefix::parse("10.1.0.0/24"), *Prefix::parse("10.1.1.0/24")};
  start();
  ASSERT_THAT(tcp().taking()->sources, SizeIs(1));
  EXPECT_EQ(tcp().taking()->sources[0].first, *Address::parse("10.1.0.0"));
  EXPECT_EQ(tcp().taking()->sources[0].last, *Address::parse("10.1.1.255"));
  config_.streams.from = {*Prefix::parse("10.1.1.0/24")};
  configure();
  ASSERT_THAT(tcp().taking()->sources, SizeIs(1));
  EXPECT_EQ(tcp().taking()->sources[0].first, *Address::parse("10.1.1.0"));
  config_.streams.from.clear();
  config_.device.networks.clear();
  configure();
  EXPECT_THAT(tcp().taking()->sources, IsEmpty()) << "which are all";
}

TEST_F(StreamsTest, APeerReachesByStreamsWhatPacketsWouldReach) {
  start();
  host_.net().setDropsForwarded(true);
  wait(AcceptPolicy::kLook);
  Connection client = arrive();
  EXPECT_TRUE(client->reset);
  EXPECT_THAT(tcp().opened(), IsEmpty());
  host_.net().setDropsForwarded(false);
  wait(AcceptPolicy::kLook);
  arrive(50'001);
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

TEST_F(StreamsTest, APeerReachesByStreamsWhatIsAcceptedAndNothingElse) {
  config_.streams.accept = {{*Prefix::parse("10.2.0.8/31"), 443, 443}};
  start();
  host_.net().setDropsForwarded(true);
  wait(AcceptPolicy::kLook);
  arrive();
  EXPECT_THAT(tcp().opened(), SizeIs(1)) << "the host need not forward";
  host_.net().setDropsForwarded(false);
  server_ = end("10.2.0.10:443");
  EXPECT_TRUE(arrive(50'001)->reset);
  server_ = end("10.2.0.9:80");
  EXPECT_TRUE(arrive(50'002)->reset);
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

TEST_F(StreamsTest, WhatTheClientSaysBeforeTheServerHasAnsweredIsKept) {
  start();
  Connection client = arrive();
  say(client, "at once", true);
  Connection server = tcp().opened().back();
  EXPECT_EQ(server->fromGateway, "");
  answer(server);
  EXPECT_EQ(server->fromGateway, "at once");
  EXPECT_TRUE(server->shut);
}

TEST_F(StreamsTest, EachWayEndsForItself) {
  start();
  auto [client, server] = join();
  say(client, "last words", true);
  EXPECT_EQ(server->fromGateway, "last words");
  EXPECT_TRUE(server->shut);
  EXPECT_FALSE(client->shut);
  say(server, "much later", false);
  EXPECT_EQ(client->fromGateway, "much later");
  say(server, "", true);
  EXPECT_TRUE(client->shut);
  EXPECT_TRUE(client->closed);
  EXPECT_TRUE(server->closed);
  EXPECT_FALSE(client->reset || server->reset);
  EXPECT_EQ(streams_->figures().open, 0u);
  EXPECT_EQ(streams_->figures().closed, 2u);
  EXPECT_EQ(lanes_.alive(), 0u);
}

TEST_F(StreamsTest, AResetCrossesFromEitherEnd) {
  start();
  for (bool byClient : {true, false}) {
    auto [client, server] = join();
    Connection who = byClient ? client : server, other = byClient ? server : client;
    who->error = ECONNRESET;
    tcp().tell(*who, {.readable = true, .writable = true, .failed = true});
    settle();
    EXPECT_TRUE(other->reset) << byClient;
    EXPECT_FALSE(other->closed);
  }
  EXPECT_THAT(lanes_.resets, ElementsAre(StreamCause::kReset, StreamCause::kReset));
  EXPECT_EQ(streams_->figures().reset, 4u) << "two streams, an end of each side";
}

TEST_F(StreamsTest, WhatTheServersHostSaysIsToldToTheClient) {
  start();
  for (auto [error, cause] : {std::pair{ECONNREFUSED, StreamCause::kRefused},
                              {EHOSTUNREACH, StreamCause::kUnreachable},
                              {ENETUNREACH, StreamCause::kUnreachable},
                              {ETIMEDOUT, StreamCause::kTimedOut}}) {
    lanes_.resets.clear();
    Connection client = arrive();
    answer(tcp().opened().back(), error);
    EXPECT_TRUE(client->reset) << error;
    EXPECT_THAT(lanes_.resets, ElementsAre(cause)) << error;
  }
  EXPECT_EQ(streams_->figures().refused, 2u);
  EXPECT_EQ(streams_->figures().unreachable, 4u);
  EXPECT_EQ(streams_->figures().timedOut, 2u);
}

TEST_F(StreamsTest, ARefusalOfThisHostItselfIsToldToo) {
  start();
  tcp().refuseConnect({ENETUNREACH});
  EXPECT_TRUE(arrive()->reset);
  EXPECT_THAT(lanes_.resets, ElementsAre(StreamCause::kUnreachable));
}

// Found by review: packets to the gateway itself pass its firewall; connections that the gateway
// opens do not.
TEST_F(StreamsTest, NoPeerReachesTheGatewayItself) {
  Link link;
  link.index = 3;
  link.name = "lan0";
  link.addresses.insert({*Address::parse("10.2.0.1"), 24, 0, true, false, false});
  host_.net().edit().setLink(link);
  host_.net().process(clock_.now());
  start();
  server_ = end("10.2.0.1:443");
  EXPECT_TRUE(arrive()->reset);
  EXPECT_THAT(tcp().opened(), IsEmpty());
  EXPECT_THAT(lanes_.resets, testing::Each(StreamCause::kForbidden));
  server_ = end("10.2.0.2:443");
  arrive();
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

// Found by review: addresses that are local only by a route (`ip route add local`) belong to no
// interface.
TEST_F(StreamsTest, NoPeerReachesAWholeNetworkOfTheGateway) {
  start();
  setLocal({"10.2.0.64/28", "fd02::64:0/112"});
  for (const char* own : {"10.2.0.70:443", "[fd02::64:1]:443"}) {
    server_ = end(own);
    EXPECT_TRUE(arrive()->reset) << own;
  }
  EXPECT_THAT(tcp().opened(), IsEmpty());
  EXPECT_THAT(lanes_.resets, ElementsAre(StreamCause::kForbidden, StreamCause::kForbidden));
  server_ = end("10.2.0.80:443");
  arrive();
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

// Found by review: an address about which the host gave no answer was taken for another host's.
TEST_F(StreamsTest, NoPeerReachesAnythingWhileItIsNotKnownWhatIsTheGateways) {
  start();
  host_.net().missUntil(clock_.now() + 1s);
  EXPECT_TRUE(arrive()->reset);
  EXPECT_THAT(tcp().opened(), IsEmpty());
  EXPECT_THAT(lanes_.resets, ElementsAre(StreamCause::kLimit))
      << "the next ones stay packets for a while";
  clock_.advance(1s);
  host_.net().process(clock_.now());
  EXPECT_FALSE(arrive()->reset);
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

// Each costs the kernel about 50 us, in which no packet is processed.
TEST_F(StreamsTest, ATurnOpensAFewConnections) {
  start();
  auto [client, server] = join();
  constexpr size_t kMany = 10 * TcpProxy::kConnects;
  for (size_t i = 0; i < kMany; ++i)
    lanes_.open({{end("10.2.0.9:0").address, static_cast<uint16_t>(1000 + i)}, end("10.1.0.7:80")},
                clock_.now());
  size_t before = tcp().opened().size(), turns = 0;
  for (bool more = true; more; ++turns) {
    more = streams_->turn(clock_.now());
    EXPECT_LE(tcp().opened().size() - before, TcpProxy::kConnects);
    before = tcp().opened().size();
  }
  EXPECT_EQ(before, 1 + kMany);
  EXPECT_GE(turns, 10u);
}

TEST_F(StreamsTest, AServerThatSaysNothingTimesOut) {
  start();
  Connection client = arrive(1), other = arrive(2);
  answer(tcp().opened().at(1));
  wait(TcpProxy::kConnectTime - 1ms);
  EXPECT_FALSE(client->reset);
  EXPECT_LE(streams_->deadline(), clock_.now() + 1ms);
  wait(1ms);
  EXPECT_TRUE(client->reset);
  EXPECT_TRUE(tcp().opened().at(0)->reset);
  EXPECT_FALSE(other->reset) << "its server has answered";
  EXPECT_THAT(lanes_.resets, ElementsAre(StreamCause::kTimedOut));
}

TEST_F(StreamsTest, AClientsPortThatTheKernelStillKeepsGivesWayToAnother) {
  start();
  tcp().refuseConnect({EADDRNOTAVAIL});
  arrive();
  EXPECT_EQ(tcp().opened().back()->source, end("10.1.0.7:0"));
}

TEST_F(StreamsTest, WithSourceOwnTheServerSeesTheGateway) {
  config_.streams.source = StreamsConfig::Source::kOwn;
  start();
  arrive();
  EXPECT_EQ(tcp().opened().back()->source, Endpoint{});
}

TEST_F(StreamsTest, ASlowReaderIsBoundedAndHoldsNobodyElse) {
  start();
  auto [client, server] = join(1);
  auto [client2, server2] = join(2);
  server->room = 1000;
  std::string much(3 * LoopLanes::kRoom, 'x');
  say(client, much);
  EXPECT_EQ(server->fromGateway.size(), 1000u);
  EXPECT_GE(client->toGateway.size(), much.size() - LoopLanes::kRoom - 1000)
      << "it waits in the client's kernel";
  say(client2, "quick");
  EXPECT_EQ(server2->fromGateway, "quick");
  server->room = SIZE_MAX;
  tcp().tell(*server, {.writable = true});
  settle();
  EXPECT_EQ(server->fromGateway, much);
}

TEST_F(StreamsTest, AResetIsHeardOfWhileNothingIsRead) {
  start();
  auto [client, server] = join();
  server->room = 0;
  say(client, std::string(3 * LoopLanes::kRoom, 'x'));
  client->error = ECONNRESET;
  tcp().tell(*client, {.failed = true});
  settle();
  EXPECT_TRUE(server->reset);
}

TEST_F(StreamsTest, MuchAtOnceLeavesOthersTheirTurn) {
  start();
  auto [client, server] = join(1);
  auto [client2, server2] = join(2);
  client->toGateway = std::string(10 * ProxyConnection::kTurn, 'x');
  client2->toGateway = "y";
  tcp().tell(*client, {.readable = true});
  tcp().tell(*client2, {.readable = true});
  streams_->turn(clock_.now());
  streams_->turn(clock_.now());
  EXPECT_EQ(server2->fromGateway, "y");
  EXPECT_LT(server->fromGateway.size(), 4 * ProxyConnection::kTurn);
  settle();
  EXPECT_EQ(server->fromGateway.size(), 10 * ProxyConnection::kTurn);
}

// ---- what is taken over

TEST_F(StreamsTest, WhatPeersHaveIsTakenOver) {
  start();
  const Interception* taking = tcp().taking();
  ASSERT_TRUE(taking);
  EXPECT_EQ(taking->device, "braid0");
  EXPECT_EQ(taking->mark, 0x80u);
  EXPECT_EQ(taking->markMask, 0xffu);
  EXPECT_THAT(taking->destinations, SizeIs(2));
  EXPECT_EQ(taking->destinations[0].first, *Address::parse("10.2.0.0"));
  EXPECT_EQ(taking->match, config_.streams.match);
  EXPECT_THAT(host_.net().configured(),
              testing::IsSupersetOf({"local route 0.0.0.0/0 dev braid0 table 6500",
                                     "local route ::/0 dev braid0 table 6500",
                                     "IPv4 rule 6100: fwmark 0x80/0xff lookup 6500",
                                     "IPv6 rule 6100: fwmark 0x80/0xff lookup 6500"}));
}

TEST_F(StreamsTest, NothingThatComesFromStrangersIsTakenOver) {
  auto link = [&](int index, const char* name, uint32_t master = 0) {
    Link l;
    l.index = index;
    l.name = name;
    l.master = master;
    host_.net().edit().setLink(l);
  };
  auto change = [&] {
    host_.net().process(clock_.now());
    streams_->onChange(clock_.now());
  };
  auto outside = [&] { return tcp().taking()->outside; };
  link(3, "lan0");
  link(4, "wan0");
  link(5, "braid0");
  const DefaultRoute wan{Address::Family::kV4, 4, {}, 0}, lan6{Address::Family::kV6, 3, {}, 0};
  host_.net().edit().addDefaultRoute(wan);
  host_.net().edit().addDefaultRoute({Address::Family::kV4, 5, {}, 100});
  config_.uplinks.emplace_back().interface = "wwan0";  // which is not there yet
  host_.net().process(clock_.now());
  start();
  EXPECT_THAT(outside(), ElementsAre("wwan0"))
      << "a gateway that does not listen has its default route anywhere";

  config_.listen = {end("0.0.0.0:4433")};
  configure();
  EXPECT_THAT(outside(), ElementsAre("wan0", "wwan0"));
  host_.net().edit().addDefaultRoute(lan6);
  change();
  EXPECT_THAT(outside(), ElementsAre("lan0", "wan0", "wwan0")) << "at once, of either family";
  host_.net().edit().removeDefaultRoute(lan6);
  host_.net().edit().removeDefaultRoute(wan);
  change();
  EXPECT_THAT(outside(), ElementsAre("lan0", "wan0", "wwan0"))
      << "a lease that is renewed opens nothing";
  streams_->setUplinks({"wwan1"});
  streams_->onChange(clock_.now());
  EXPECT_THAT(outside(), ElementsAre("lan0", "wan0", "wwan1"))
      << "an uplink with another name does not, either";
  configure();
  EXPECT_THAT(outside(), ElementsAre("wwan0"));
  host_.net().edit().link(4).addresses.insert(
      LinkAddress{.address = *Address::parse("198.51.100.1"), .prefixLength = 24});
  host_.net().process(clock_.now());
  config_.listen = {end("198.51.100.1:4433")};
  configure();
  EXPECT_THAT(outside(), ElementsAre("wan0", "wwan0"))
      << "strangers come to where it listens, whatever the routes";
  config_.listen = {end("0.0.0.0:4433")};
  configure();
  EXPECT_THAT(outside(), ElementsAre("wwan0"));
  int changes = tcp().changes();
  change();
  EXPECT_EQ(tcp().changes(), changes);

  link(6, "vrf0");
  link(7, "wwan0", 6);
  change();
  EXPECT_THAT(outside(), ElementsAre("vrf0", "wwan0"))
      << "the kernel shows the packet as each of them";
  config_.uplinks.clear();
  configure();
  EXPECT_THAT(outside(), IsEmpty());
}

// A listening gateway's way to the Internet is renamed, unplugged and plugged in again while its
// lease is away.
TEST_F(StreamsTest, AnInterfaceOfStrangersStaysOneUnderAnotherNameAndPluggedInAnew) {
  NetworkTable& table = host_.net().edit();
  auto link = [&](int index, const char* name) {
    Link l;
    l.index = index;
    l.name = name;
    table.setLink(l);
  };
  auto outside = [&] {
    host_.net().process(clock_.now());
    streams_->onChange(clock_.now());
    return tcp().taking()->outside;
  };
  const DefaultRoute wan{Address::Family::kV4, 4, {}, 0};
  config_.listen = {end("0.0.0.0:4433")};
  link(3, "lan0");
  link(4, "wan0");
  start();
  table.addDefaultRoute(wan);
  ASSERT_THAT(outside(), ElementsAre("wan0"));
  table.removeDefaultRoute(wan);
  link(4, "wan1");
  EXPECT_THAT(outside(), ElementsAre("wan1"));
  link(5, "wan0");
  EXPECT_THAT(outside(), ElementsAre("wan1")) << "another one has taken the name";
  table.removeLink(4);
  EXPECT_THAT(outside(), ElementsAre("wan1")) << "the rules are there before it comes back";
  link(6, "wan1");
  EXPECT_THAT(outside(), ElementsAre("wan1"));
  link(6, "wan2");
  EXPECT_THAT(outside(), ElementsAre("wan2"));
}

TEST_F(StreamsTest, APeerThatCannotKeepsItsPackets) {
  PeerOptions& other = config_.peers.emplace_back().options;
  other.prefixes = {*Prefix::parse("10.2.0.64/26")};
  lanes_.closed = {*Address::parse("10.2.0.65")};
  start();
  ASSERT_TRUE(tcp().taking());
  EXPECT_THAT(
      tcp().taking()->destinations,
      ElementsAre(
          AddressRange{*Address::parse("10.2.0.0"), *Address::parse("10.2.0.63")},
          AddressRange{*Address::parse("10.2.0.128"), *Address::parse("10.2.0.255")},
          AddressRange{*Address::parse("fd02::"), *Address::parse("fd02::ffff:ffff:ffff:ffff")}));
  lanes_.closed.clear();
  wait(InterceptPolicy::kLook);
  EXPECT_THAT(tcp().taking()->destinations, SizeIs(2)) << "what touches is one";
}

TEST_F(StreamsTest, ASingleAddressOfAPeerKeepsItsPackets) {
  config_.peers[0].options.prefixes = {*Prefix::parse("10.2.0.1/32"),
                                       *Prefix::parse("10.2.0.0/30")};
  start();
  EXPECT_THAT(tcp().taking()->destinations,
              ElementsAre(AddressRange{*Address::parse("10.2.0.2"), *Address::parse("10.2.0.3")}))
      << "10.2.0.0 alone is left, too";
}

TEST_F(StreamsTest, WhatThePeerForbidsStaysPacketsForAWhile) {
  start();
  wait(InterceptPolicy::kLook);
  setLocal({"10.2.0.9/32"});  // this gateway is also the far one
  EXPECT_TRUE(arrive()->reset);
  const StreamPair pair{*Address::parse("10.1.0.7"), server_.address};
  ASSERT_TRUE(tcp().taking());
  EXPECT_THAT(tcp().taking()->avoid, ElementsAre(pair)) << "at once: its host tries again soon";
  // Another connection of the same pair, already under way, does not add a second pair but restarts
  // the time.
  wait(InterceptPolicy::kAvoid - 10s);
  EXPECT_TRUE(arrive()->reset);
  EXPECT_THAT(tcp().taking()->avoid, ElementsAre(pair));
  wait(InterceptPolicy::kAvoid - 1ms);
  EXPECT_THAT(tcp().taking()->avoid, SizeIs(1));
  wait(InterceptPolicy::kLook);
  EXPECT_THAT(tcp().taking()->avoid, IsEmpty());
}

TEST_F(StreamsTest, WhatIsForbiddenIsRememberedOfAFewAndChangesTheRulesSeldom) {
  start();
  wait(InterceptPolicy::kLook);
  setLocal({"10.2.0.0/24"});
  int changes = tcp().changes();
  for (unsigned i = 0; i < 2 * InterceptPolicy::kMostAvoided; ++i) {
    server_ = {*Address::parse("10.2.0." + std::to_string(1 + i)), 443};
    EXPECT_TRUE(arrive()->reset);
  }
  EXPECT_EQ(tcp().changes(), changes + 1) << "once, until the next look";
  wait(InterceptPolicy::kLook);
  EXPECT_EQ(tcp().changes(), changes + 2);
  ASSERT_THAT(tcp().taking()->avoid, SizeIs(InterceptPolicy::kMostAvoided));
  EXPECT_EQ(tcp().taking()->avoid.back().destination, server_.address) << "the newest ones";
}

TEST_F(StreamsTest, OtherEndsAreNotRemembered) {
  start();
  wait(InterceptPolicy::kLook);
  tcp().refuseConnect({ECONNREFUSED});
  EXPECT_TRUE(arrive()->reset);
  EXPECT_THAT(tcp().taking()->avoid, IsEmpty());
}

TEST_F(StreamsTest, NothingIsTakenOverWhileNoPeerCan) {
  lanes_.closed = {*Address::parse("10.2.0.1"), *Address::parse("fd02::1")};
  start();
  EXPECT_FALSE(tcp().taking());
  lanes_.closed.clear();
  EXPECT_LE(streams_->deadline(), clock_.now() + InterceptPolicy::kLook);
  wait(InterceptPolicy::kLook);
  EXPECT_TRUE(tcp().taking());
  int changes = tcp().changes();
  wait(InterceptPolicy::kLook);
  EXPECT_EQ(tcp().changes(), changes) << "what is so already is not done again";
}

TEST_F(StreamsTest, AHostThatRefusesIsAskedAgainLater) {
  start();
  tcp().refuseInterception(true);
  config_.streams.match[0].lastPort = 444;
  configure();
  tcp().refuseInterception(false);
  wait(InterceptPolicy::kRetry - 1ms);
  EXPECT_EQ(tcp().taking()->match[0].lastPort, 443) << "what was there stays";
  wait(InterceptPolicy::kLook);
  EXPECT_EQ(tcp().taking()->match[0].lastPort, 444);
}

// ---- bounds

TEST_F(StreamsTest, AtTheBoundNewConnectionsStayPackets) {
  start();
  tcp().setMost(20);
  configure();
  std::vector<Connection> clients;
  for (uint16_t i = 0; i < 10; ++i) clients.push_back(join(static_cast<uint16_t>(1000 + i)).first);
  EXPECT_EQ(streams_->figures().open, 20u);
  EXPECT_FALSE(tcp().taking());
  EXPECT_EQ(streams_->figures().lifts, 1u);
  Connection late = arrive(2000);
  EXPECT_FALSE(late->reset) << "was on its way already, and waits for room";
  EXPECT_LE(streams_->deadline(), clock_.now() + TcpProxy::kPatience);
  wait(TcpProxy::kPatience);
  EXPECT_TRUE(late->reset);
  EXPECT_EQ(streams_->figures().refusedHere, 1u);
  say(clients[0], "still works");
  auto end = [&](size_t i) {
    clients[i]->error = ECONNRESET;
    tcp().tell(*clients[i], {.failed = true});
    settle();
  };
  end(0);
  EXPECT_TRUE(tcp().taking()) << "a tenth is free";
  EXPECT_EQ(streams_->figures().open, 18u);
}

// Found by a burst of short connections: many more connections are being opened than there is room
// for, and the room becomes free soon.
TEST_F(StreamsTest, WhatWaitsAtTheBoundIsTakenWhenThereIsRoom) {
  start();
  tcp().setMost(20);
  configure();
  std::vector<Connection> clients;
  for (uint16_t i = 0; i < 10; ++i) clients.push_back(join(static_cast<uint16_t>(1000 + i)).first);
  Connection late = arrive(2000);
  EXPECT_FALSE(tcp().accepts());
  wait(TcpProxy::kPatience / 2);
  clients[0]->error = ECONNRESET;
  tcp().tell(*clients[0], {.failed = true});
  settle();
  EXPECT_FALSE(late->reset);
  EXPECT_EQ(streams_->figures().accepted, 11u);
  say(late, "at last");
  answer(tcp().opened().back());
  EXPECT_EQ(tcp().opened().back()->fromGateway, "at last");
  wait(TcpProxy::kPatience);
  EXPECT_FALSE(late->reset);
  EXPECT_EQ(streams_->figures().refusedHere, 0u);
}

TEST_F(StreamsTest, WhatWaitsForAPeersRoomIsTakenInItsTurn) {
  start();
  lanes_.full = true;
  Connection first = arrive(1);
  say(first, "first");
  wait(TcpProxy::kPatience / 2);
  Connection second = arrive(2);
  EXPECT_FALSE(first->reset || second->reset);
  wait(TcpProxy::kPatience / 2);
  EXPECT_TRUE(first->reset) << "for long enough";
  EXPECT_FALSE(second->reset);
  lanes_.full = false;
  wait(1ms);
  EXPECT_EQ(streams_->figures().accepted, 1u);
  EXPECT_TRUE(streams_->hasActed());
  settle();
  EXPECT_EQ(tcp().opened().back()->source.port, 2);
  wait(TcpProxy::kPatience);
  EXPECT_FALSE(second->reset);
}

// Found by a burst while the gateway was not scheduled: the kernel had queued more connections than
// may wait for a peer.
TEST_F(StreamsTest, MoreThanMayWaitForAPeerStayInTheSystemsQueue) {
  start();
  tcp().setMost(10'000);
  configure();
  constexpr size_t kMore = 100;
  lanes_.full = true;
  std::vector<Connection> clients;
  for (size_t i = 0; i < TcpProxy::kMostWaiting + kMore; ++i)
    clients.push_back(
        tcp().arrive({end("10.1.0.7:0").address, static_cast<uint16_t>(1000 + i)}, server_));
  settle();
  EXPECT_FALSE(tcp().accepts());
  EXPECT_FALSE(tcp().taking());
  EXPECT_EQ(streams_->figures().refusedHere, 0u);
  wait(TcpProxy::kPatience / 2);
  lanes_.full = false;
  wait(1ms);
  EXPECT_TRUE(tcp().accepts());
  EXPECT_EQ(streams_->figures().accepted, clients.size());
  EXPECT_EQ(streams_->figures().refusedHere, 0u);
  settle();
  for (const Connection& client : clients) ASSERT_FALSE(client->reset);
  EXPECT_EQ(streams_->figures().open, 2 * clients.size());
}

TEST_F(StreamsTest, TheSystemsQueueIsLookedAtAgainWhenHalfHaveLeft) {
  start();
  lanes_.full = true;
  std::vector<Connection> clients;
  for (size_t i = 0; i < TcpProxy::kMostWaiting + 1; ++i) {
    clients.push_back(
        tcp().arrive({end("10.1.0.7:0").address, static_cast<uint16_t>(1000 + i)}, server_));
    if (i == TcpProxy::kMostWaiting / 2) wait(TcpProxy::kPatience / 2);
  }
  settle();
  EXPECT_FALSE(tcp().accepts());
  wait(TcpProxy::kPatience / 2 - 1ms);
  EXPECT_FALSE(tcp().accepts());
  wait(1ms);
  EXPECT_TRUE(tcp().accepts()) << "those that came first have waited long enough";
  EXPECT_FALSE(clients.back()->reset);
}

TEST_F(StreamsTest, NorDoTheyWaitLongerThere) {
  start();
  constexpr size_t kMore = 3 * TcpProxy::kMostWaiting;
  lanes_.full = true;
  std::vector<Connection> clients;
  for (size_t i = 0; i < TcpProxy::kMostWaiting + kMore; ++i)
    clients.push_back(
        tcp().arrive({end("10.1.0.7:0").address, static_cast<uint16_t>(1000 + i)}, server_));
  settle();
  wait(TcpProxy::kPatience);
  EXPECT_LE(streams_->deadline(), clock_.now()) << "the rest, at once";
  for (size_t turn = 0; turn < kMore / TcpProxy::kMostWaiting; ++turn) settle();
  for (const Connection& client : clients) ASSERT_TRUE(client->reset);
  EXPECT_EQ(streams_->figures().refusedHere, clients.size());
  lanes_.full = false;
  wait(InterceptPolicy::kLook);
  EXPECT_TRUE(tcp().accepts());
  EXPECT_TRUE(tcp().taking());
  arrive();
  EXPECT_EQ(streams_->figures().accepted, 1u);
}

// Connections that were being opened when the packet lane took over must not be refused.
TEST_F(StreamsTest, BeforeTheBoundNewConnectionsStayPacketsAndThoseOnTheirWayFindRoom) {
  start();
  tcp().setMost(64);
  configure();
  std::vector<Connection> clients;
  for (uint16_t i = 0; i < 30; ++i) clients.push_back(join(static_cast<uint16_t>(1000 + i)).first);
  EXPECT_EQ(streams_->figures().open, 60u);
  EXPECT_FALSE(tcp().taking());
  for (uint16_t i = 0; i < 2; ++i)
    EXPECT_FALSE(arrive(static_cast<uint16_t>(2000 + i))->reset) << i;
  EXPECT_EQ(streams_->figures().open, 64u);
  EXPECT_EQ(streams_->figures().refusedHere, 0u);
}

TEST_F(StreamsTest, AtASmallBoundTheRulesDoNotChangeToAndFro) {
  start();
  tcp().setMost(4);
  configure();
  auto [client, server] = join(1);
  join(2);
  int changes = tcp().changes();
  for (int i = 0; i < 5; ++i) {
    streams_->turn(clock_.now());
    EXPECT_FALSE(tcp().taking());
  }
  EXPECT_EQ(tcp().changes(), changes);
  client->error = ECONNRESET;
  tcp().tell(*client, {.failed = true});
  settle();
  EXPECT_TRUE(tcp().taking());
}

TEST_F(StreamsTest, AtTheBoundOfAPeerTheNextConnectionStaysAPacket) {
  start();
  lanes_.nearlyFull = true;
  Connection client = arrive(1);
  EXPECT_FALSE(client->reset) << "still finds room";
  EXPECT_FALSE(tcp().taking()) << "at once, not at the next look";
  lanes_.nearlyFull = false;
  wait(InterceptPolicy::kLook);
  EXPECT_TRUE(tcp().taking());
}

TEST_F(StreamsTest, WhatAPeerOpensIsTakenFromTheSameRoom) {
  start();
  lanes_.nearlyFull = true;
  lanes_.open({end("10.2.0.9:50000"), end("10.1.0.7:80")}, clock_.now());
  settle();
  EXPECT_THAT(tcp().opened(), SizeIs(1));
  EXPECT_FALSE(tcp().taking()) << "at once, not at the next look";
}

// Found by review: each connection changed the firewall rules.
TEST_F(StreamsTest, PeersThatFillAndEmptyInTurnsChangeTheRulesSeldom) {
  config_.peers.emplace_back().options.prefixes = {*Prefix::parse("10.3.0.0/24")};
  start();
  const int before = tcp().changes();
  const Address peers[] = {*Address::parse("10.2.0.1"), *Address::parse("10.3.0.1")};
  for (int i = 0; i < 100; ++i) {
    lanes_.closed = {peers[i % 2]};
    tcp().arrive(end(("10.1.0.7:" + std::to_string(1000 + i)).c_str()), {peers[i % 2], 443});
    settle();
  }
  EXPECT_LE(tcp().changes() - before, 4);
  lanes_.closed.clear();
  wait(InterceptPolicy::kLook);
  wait(InterceptPolicy::kLook);
  ASSERT_TRUE(tcp().taking());
  EXPECT_THAT(tcp().taking()->destinations, SizeIs(3)) << "both again, and IPv6";
}

TEST_F(StreamsTest, WithoutDescriptorsTheBoundIsWhatIsOpen) {
  start();
  std::vector<Connection> clients;
  for (uint16_t i = 0; i < 10; ++i) clients.push_back(join(static_cast<uint16_t>(1000 + i)).first);
  tcp().refuseAccept(EMFILE);
  EXPECT_TRUE(arrive(2000)->reset);
  EXPECT_EQ(streams_->figures().refusedHere, 1u);
  EXPECT_FALSE(tcp().taking());
  EXPECT_FALSE(tcp().accepts()) << "what is on its way yet waits for room";
  tcp().refuseAccept(0);
  clients[0]->error = ECONNRESET;
  tcp().tell(*clients[0], {.failed = true});
  settle();
  EXPECT_TRUE(tcp().accepts());
  EXPECT_TRUE(tcp().taking()) << "two of twenty are free again";
  EXPECT_EQ(streams_->figures().most, 1000u);
}

TEST_F(StreamsTest, WithoutMemoryNothingIsAcceptedForAWhile) {
  start();
  tcp().refuseAccept(ENOBUFS);
  Connection client = arrive();
  EXPECT_FALSE(tcp().accepts());
  EXPECT_FALSE(tcp().taking());
  tcp().refuseAccept(0);
  wait(TcpProxy::kPause);
  EXPECT_TRUE(tcp().accepts());
  settle();
  EXPECT_EQ(streams_->figures().accepted, 1u);
  EXPECT_TRUE(tcp().taking());
}

TEST_F(StreamsTest, AStreamThatThePeerHasNoRoomForIsResetInTheEnd) {
  start();
  lanes_.full = true;
  Connection client = arrive();
  wait(TcpProxy::kPatience - 1ms);
  EXPECT_FALSE(client->reset);
  EXPECT_LE(streams_->deadline(), clock_.now() + 1ms);
  wait(1ms);
  EXPECT_TRUE(client->reset);
  EXPECT_EQ(streams_->figures().refusedHere, 1u);
}

// ---- before a restart

TEST_F(StreamsTest, ADrainStartsNoStreamsAndKeepsThoseThatAreOpen) {
  start();
  auto [client, server] = join();
  streams_->drain(clock_.now() + 40s, clock_.now());
  EXPECT_FALSE(tcp().taking()) << "at once";
  lanes_.open({end("10.2.0.9:50001"), end("10.1.0.7:443")}, clock_.now());
  settle();
  EXPECT_THAT(tcp().opened(), SizeIs(1)) << "of the peers none either";
  EXPECT_EQ(streams_->figures().limit, 1u) << "so that the peer leaves further ones to packets";
  say(client, "question");
  EXPECT_EQ(server->fromGateway, "question");
}

TEST_F(StreamsTest, ADrainThatNoRestartFollowsIsOver) {
  start();
  streams_->drain(clock_.now() + 40s, clock_.now());
  EXPECT_LE(streams_->deadline(), clock_.now() + 40s);
  wait(40s - 1ms);
  EXPECT_FALSE(tcp().taking());
  wait(1ms);
  ASSERT_TRUE(tcp().taking());
  EXPECT_GT(streams_->deadline(), clock_.now());
  join();
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

TEST_F(StreamsTest, AReloadEndsADrain) {
  start();
  streams_->drain(clock_.now() + 40s, clock_.now());
  configure();
  EXPECT_TRUE(tcp().taking());
}

TEST_F(StreamsTest, TheEndResetsAll) {
  start();
  auto [client, server] = join();
  streams_->stop();
  EXPECT_TRUE(client->reset);
  EXPECT_TRUE(server->reset);
  EXPECT_FALSE(tcp().taking());
}

}  // namespace
}  // namespace braid::gateway_test
