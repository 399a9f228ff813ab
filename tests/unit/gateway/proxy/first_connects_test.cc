// `streams.connect: first` on a fake host: a client's connection is accepted when its server has
// accepted. One gateway is both the near and the far one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "gateway/proxy/tcp_proxy.h"
#include "host/fake/fake_host.h"
#include "inet/icmp.h"
#include "inet/inner_packet.h"
#include "inet/ip.h"
#include "simnet/inner_packets.h"
#include "tests/unit/gateway/loop_lanes.h"

namespace braid::first_connects_test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

using Connection = FakeStreamHost::Connection;
using Way = PendingConnects::Way;

class FirstConnects : public testing::Test {
 protected:
  FirstConnects() {
    setLogLevel("error");
    config_.tunnel.streams.on = true;
    config_.streams.match = {{std::nullopt, 443, 443}};
    config_.streams.connect = StreamsConfig::Connect::kFirst;
    config_.peers.emplace_back().options.prefixes = {*Prefix::parse("10.2.0.0/24"),
                                                     *Prefix::parse("fd02::/64")};
  }
  ~FirstConnects() override { setLogLevel("info"); }

  void start() {
    proxy_ = std::make_unique<TcpProxy>(host_, host_.net(), "braid0", lanes_, pool_, log_);
    configure();
  }
  void configure() { proxy_->configure(config_, {}, {}, clock_.now()); }
  FakeStreamHost& tcp() { return *host_.streams(); }
  void settle() {
    while (proxy_->turn(clock_.now())) {
    }
    while (auto out = proxy_->pollPacket()) out_.push_back(std::move(*out));
  }
  void wait(Duration time) {
    clock_.advance(time);
    settle();
  }
  Packet syn(uint16_t port, uint8_t flags = TcpFields::kSyn, ByteView data = {}) {
    return syn(port, flags, data, 7);
  }
  Packet syn(uint16_t port, uint8_t flags, ByteView data, uint32_t number) {
    sim::TcpSegment segment{.sport = port,
                            .dport = server_.port,
                            .seq = number,
                            .flags = flags,
                            .window = 1000,
                            .payload = data};
    return pool_.copy(sim::tcpPacket({client_, server_.address, ip::kTcp}, segment));
  }
  bool comesOut(Packet packet) {
    bool taken = proxy_->onPacket(packet, clock_.now());
    settle();
    return taken;
  }
  /// A client's SYN, which the packet filter has selected, comes out of the device.
  bool knock(uint16_t port = 50'000) {
    tcp().letThrough({client_, port}, server_);
    return comesOut(syn(port));
  }
  /// The client begins again with the same port.
  bool knockAgain() { return comesOut(syn(50'000, TcpFields::kSyn, {}, 8)); }
  void answer(const Connection& server, int error = 0) {
    server->connectError = error;
    tcp().tell(*server, {.writable = error == 0, .failed = error != 0});
    settle();
  }
  Connection arrive(uint16_t port = 50'000) {
    Connection client = tcp().arrive({client_, port}, server_);
    settle();
    return client;
  }
  Way onlyWay() {
    EXPECT_THAT(out_, SizeIs(1));
    Way way = out_.empty() ? Way::kListener : out_.front().way;
    out_.clear();
    return way;
  }
  StreamFigures figures() { return proxy_->figures(); }

  Address client_ = *Address::parse("10.1.0.7");
  Endpoint server_ = *Endpoint::parse("10.2.0.9:443");
  FakeClock clock_;
  FakeHost host_{clock_, 1};
  LogLimiter log_;
  PacketPool pool_{2048, 4096};
  gateway_test::LoopLanes lanes_;
  Config config_;
  std::unique_ptr<TcpProxy> proxy_;
  std::vector<PendingConnects::Output> out_;
};

TEST_F(FirstConnects, AClientIsAcceptedWhenItsServerHasAccepted) {
  start();
  EXPECT_TRUE(tcp().taking()->waits);
  EXPECT_TRUE(knock());
  ASSERT_THAT(tcp().opened(), SizeIs(1));
  EXPECT_EQ(tcp().opened()[0]->source, (Endpoint{client_, 50'000}));
  EXPECT_THAT(tcp().takeGivenBack(), IsEmpty());
  EXPECT_EQ(figures().connecting, 1u);
  answer(tcp().opened()[0]);
  std::vector<std::vector<uint8_t>> given = tcp().takeGivenBack();
  ASSERT_THAT(given, SizeIs(1));
  const Packet expected = syn(50'000);
  EXPECT_EQ(given[0], std::vector<uint8_t>(expected.view().begin(), expected.view().end()));
  Connection client = arrive();
  EXPECT_EQ(figures().connecting, 0u);
  EXPECT_EQ(figures().accepted, 1u);
  EXPECT_THAT(tcp().opened(), SizeIs(1)) << "it has its stream already";
  client->toGateway = "question";
  tcp().tell(*client, {.readable = true});
  settle();
  EXPECT_EQ(tcp().opened()[0]->fromGateway, "question");
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(FirstConnects, WhatTheServerSaysFirstIsKept) {
  start();
  knock();
  Connection server = tcp().opened()[0];
  answer(server);
  server->toGateway = "welcome";
  tcp().tell(*server, {.readable = true});
  settle();
  EXPECT_EQ(arrive()->fromGateway, "welcome");
}

TEST_F(FirstConnects, AServersRefusalIsTheClients) {
  start();
  for (auto [error, way] : {std::pair{ECONNREFUSED, Way::kHost}, {EHOSTUNREACH, Way::kHost}}) {
    knock();
    answer(tcp().opened().back(), error);
    EXPECT_EQ(onlyWay(), way);
  }
  EXPECT_THAT(tcp().takeGivenBack(), IsEmpty());
  EXPECT_EQ(figures().declined, 2u);
  EXPECT_EQ(figures().connecting, 0u);
  EXPECT_EQ(figures().accepted, 0u);
  EXPECT_EQ(lanes_.alive(), 0u);
}

TEST_F(FirstConnects, ARepeatedSynOpensNoSecondStream) {
  start();
  EXPECT_TRUE(knock());
  wait(1s);
  EXPECT_TRUE(comesOut(syn(50'000)));
  EXPECT_THAT(tcp().opened(), SizeIs(1));
  EXPECT_EQ(lanes_.alive(), 2u);
}

TEST_F(FirstConnects, ALateCopyOfASynOpensNoSecondStream) {
  start();
  knock();
  answer(tcp().opened()[0]);
  Connection client = arrive();
  EXPECT_TRUE(comesOut(syn(50'000))) << "it was repeated just before";
  wait(1s);
  EXPECT_TRUE(comesOut(syn(50'000))) << "it has waited in a queue";
  client->error = ECONNRESET;
  tcp().tell(*client, {.failed = true});
  settle();
  EXPECT_EQ(figures().open, 0u);
  wait(1s);
  EXPECT_TRUE(comesOut(syn(50'000))) << "nor when the connection has ended";
  EXPECT_THAT(tcp().opened(), SizeIs(1));
  EXPECT_THAT(tcp().takeGivenBack(), SizeIs(1));
  EXPECT_TRUE(knockAgain());
  EXPECT_THAT(tcp().opened(), SizeIs(2));
}

TEST_F(FirstConnects, AClientWhoseAnswerWasLostHasItsSynGivenBackAgain) {
  start();
  knock();
  answer(tcp().opened()[0]);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(tcp().takeGivenBack(), SizeIs(1));
    wait(1s);
    EXPECT_TRUE(comesOut(syn(50'000)));
  }
  EXPECT_FALSE(arrive()->reset);
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

// What is given back comes out of the device at once, by the host's rules.
TEST_F(FirstConnects, WhatTheHostRoutesToTheDeviceInsteadOfTheListenerStaysPackets) {
  for (bool asks : {false, true}) {
    lanes_.answers = asks;
    start();
    EXPECT_TRUE(knock());
    if (asks) answer(tcp().opened().back());
    EXPECT_THAT(tcp().takeGivenBack(), SizeIs(1));
    for (int i = 0; i < 3; ++i) {
      wait(1ms);
      EXPECT_TRUE(comesOut(syn(50'000)));
    }
    EXPECT_THAT(tcp().takeGivenBack(), IsEmpty()) << "not without end";
    wait(1s);
    EXPECT_FALSE(comesOut(syn(50'000))) << "the client's next one crosses the tunnel";
    EXPECT_THAT(tcp().takeGivenBack(), IsEmpty());
    EXPECT_EQ(figures().connecting, 0u);
    EXPECT_EQ(lanes_.alive(), 0u) << "the server is let go";
    wait(InterceptPolicy::kLook);
    ASSERT_THAT(tcp().taking()->avoid, SizeIs(1)) << "nor does the next one come here";
    EXPECT_EQ(tcp().taking()->avoid[0], (StreamPair{client_, server_.address}));
  }
}

// The rules may be lifted while it waits, for want of room.
TEST_F(FirstConnects, ACopyOfASynIsTakenWhateverTheRulesAreByThen) {
  start();
  knock();
  tcp().forgetLetThrough();
  wait(1s);
  EXPECT_TRUE(comesOut(syn(50'000)));
  EXPECT_FALSE(knockAgain()) << "somebody else's may be";
  answer(tcp().opened()[0]);
  std::vector<std::vector<uint8_t>> given = tcp().takeGivenBack();
  ASSERT_THAT(given, SizeIs(1));
  const Packet expected = syn(50'000);
  EXPECT_EQ(given[0], std::vector<uint8_t>(expected.view().begin(), expected.view().end()));
  wait(1s);
  EXPECT_FALSE(knockAgain());
  EXPECT_THAT(tcp().takeGivenBack(), IsEmpty());
}

TEST_F(FirstConnects, OtherPacketsAreLeftToTheTunnel) {
  start();
  EXPECT_FALSE(comesOut(syn(50'000))) << "the packet filter has not selected it";
  tcp().letThrough({client_, 50'000}, server_);
  EXPECT_FALSE(comesOut(syn(50'000, TcpFields::kSyn | TcpFields::kAck)));
  EXPECT_FALSE(comesOut(syn(50'000, TcpFields::kAck)));
  const uint8_t data[] = {1};
  EXPECT_FALSE(comesOut(syn(50'000, TcpFields::kSyn, data))) << "TCP Fast Open";
  server_.address = *Address::parse("10.3.0.1");
  EXPECT_FALSE(knock()) << "behind no peer";
  EXPECT_EQ(lanes_.alive(), 0u);
}

TEST_F(FirstConnects, EarlyTakesNothingFromTheDevice) {
  config_.streams.connect = StreamsConfig::Connect::kEarly;
  start();
  EXPECT_FALSE(tcp().taking()->waits);
  EXPECT_FALSE(knock());
}

TEST_F(FirstConnects, WhereAHostCannotGiveBackItIsEarly) {
  start();
  tcp().refuseGivingBack();
  configure();
  EXPECT_FALSE(tcp().taking()->waits);
  EXPECT_FALSE(knock());
}

TEST_F(FirstConnects, BothFamilies) {
  client_ = *Address::parse("fd01::7");
  server_ = *Endpoint::parse("[fd02::9]:443");
  start();
  EXPECT_TRUE(knock());
  answer(tcp().opened().back());
  EXPECT_THAT(tcp().takeGivenBack(), SizeIs(1));
  EXPECT_FALSE(arrive()->reset);
  EXPECT_TRUE(knock(50'001));
  answer(tcp().opened().back(), ECONNREFUSED);
  EXPECT_EQ(onlyWay(), Way::kHost);
}

// The kernel tells the connection's source that it does not find the server: that is the client.
TEST_F(FirstConnects, AServerThatTheFarHostDoesNotFindIsUnreachable) {
  Link link;
  link.index = 3;
  link.name = "lan0";
  link.addresses.insert({*Address::parse("10.2.0.1"), 24, 0, true, false, false});
  host_.net().edit().setLink(link);
  host_.net().process(clock_.now());
  start();
  knock();
  Connection server = tcp().opened()[0];
  auto tell = [&](const char* router, uint16_t port) {
    Packet error = buildUnreachable(pool_, syn(port).view(), Unreachable::kHost);
    Address from = *Address::parse(router);
    std::copy_n(from.bytes.begin(), 4, error.data() + 12);
    return comesOut(std::move(error));
  };
  EXPECT_FALSE(tell("10.2.0.1", 50'001)) << "of another connection, which crosses as packets";
  EXPECT_FALSE(tell("10.2.0.2", 50'000)) << "of another host";
  EXPECT_FALSE(server->reset);
  EXPECT_TRUE(tell("10.2.0.1", 50'000));
  EXPECT_TRUE(server->reset);
  EXPECT_EQ(onlyWay(), Way::kHost);
  EXPECT_EQ(figures().unreachable, 2u) << "at both ends";
  EXPECT_FALSE(tell("10.2.0.1", 50'000)) << "it is over";
}

TEST_F(FirstConnects, APeerThatDoesNotAnswerIsUsedAsWithEarly) {
  lanes_.answers = false;
  start();
  EXPECT_TRUE(knock());
  EXPECT_THAT(tcp().takeGivenBack(), SizeIs(1)) << "at once";
  EXPECT_THAT(tcp().opened(), IsEmpty());
  arrive();
  EXPECT_THAT(tcp().opened(), SizeIs(1));
  EXPECT_EQ(figures().accepted, 1u);
  wait(1s);
  EXPECT_TRUE(comesOut(syn(50'000))) << "a late copy of its SYN";
  EXPECT_THAT(tcp().takeGivenBack(), IsEmpty());
  EXPECT_THAT(tcp().opened(), SizeIs(1));
}

TEST_F(FirstConnects, WhatThePeerForbidsCrossesAsPackets) {
  start();
  host_.net().setDropsForwarded(true);
  wait(AcceptPolicy::kLook);
  knock();
  EXPECT_EQ(onlyWay(), Way::kTunnel);
  EXPECT_EQ(figures().declined, 0u);
  wait(InterceptPolicy::kLook);
  ASSERT_THAT(tcp().taking()->avoid, SizeIs(1));
  EXPECT_EQ(tcp().taking()->avoid[0], (StreamPair{client_, server_.address}));
}

TEST_F(FirstConnects, WhenTheSessionIsLostASynCrossesAsAPacket) {
  start();
  knock();
  lanes_.lose();
  settle();
  EXPECT_EQ(onlyWay(), Way::kTunnel);
  EXPECT_EQ(figures().declined, 0u);
  EXPECT_EQ(figures().connecting, 0u);
}

TEST_F(FirstConnects, WithoutRoomAConnectionStaysPackets) {
  start();
  for (bool* isFull : {&lanes_.full, &lanes_.nearlyFull}) {
    *isFull = true;
    EXPECT_FALSE(knock());
    *isFull = false;
  }
  EXPECT_TRUE(knock()) << "the first of them would not have changed a thing";
}

TEST_F(FirstConnects, AFloodFillsNoMoreThanTheBound) {
  start();
  tcp().setMost(10'000);
  configure();
  size_t taken = 0;
  for (uint16_t port = 1; port <= 2 * PendingConnects::kMost; ++port) taken += knock(port);
  EXPECT_LT(taken, PendingConnects::kMost);
  EXPECT_GT(taken, PendingConnects::kMost / 2);
  EXPECT_EQ(figures().connecting, taken);
  EXPECT_FALSE(tcp().taking()) << "new connections do not even come here";
  wait(PendingConnects::kPause);
  EXPECT_EQ(figures().connecting, 0u) << "nobody repeats a SYN";
  EXPECT_EQ(lanes_.alive(), 0u);
  for (const Connection& server : tcp().opened()) EXPECT_TRUE(server->reset);
  wait(InterceptPolicy::kLook);
  EXPECT_TRUE(tcp().taking());
}

TEST_F(FirstConnects, TheBoundOfConnectionsHoldsForThoseThatWait) {
  start();
  tcp().setMost(2);
  configure();
  EXPECT_TRUE(knock(1));
  Connection server = tcp().opened().back();
  EXPECT_FALSE(knock(2)) << "the server's end, here too, is the second one";
  answer(server);
  EXPECT_FALSE(arrive(1)->reset) << "its room was kept";
  EXPECT_EQ(figures().accepted, 1u);
}

// The host may accept another one first, as one that begins again in TIME_WAIT.
TEST_F(FirstConnects, AnotherConnectionWaitsForTheRoomOfThoseThatWait) {
  start();
  tcp().setMost(2);
  configure();
  EXPECT_TRUE(knock(1));
  Connection server = tcp().opened().back();
  Connection other = arrive(2);
  EXPECT_FALSE(other->reset);
  wait(1s);
  EXPECT_FALSE(other->reset);
  EXPECT_EQ(figures().accepted, 0u);
  answer(server, ECONNREFUSED);
  settle();
  EXPECT_FALSE(other->reset);
  EXPECT_EQ(figures().accepted, 1u);
  EXPECT_EQ(figures().refusedHere, 0u);
}

TEST_F(FirstConnects, AnotherConnectionIsResetWhenNoRoomComes) {
  start();
  tcp().setMost(2);
  configure();
  EXPECT_TRUE(knock(1));
  Connection other = arrive(2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(other->reset);
    wait(1s);
    comesOut(syn(1));
  }
  EXPECT_TRUE(other->reset);
  EXPECT_EQ(figures().refusedHere, 1u);
  EXPECT_EQ(figures().connecting, 1u);
}

TEST_F(FirstConnects, AServerThatHasGoneBeforeTheClientWasAcceptedResetsIt) {
  start();
  knock();
  Connection server = tcp().opened().back();
  answer(server);
  server->error = ECONNRESET;
  tcp().tell(*server, {.failed = true});
  settle();
  EXPECT_TRUE(arrive()->reset);
  EXPECT_THAT(tcp().opened(), SizeIs(1));
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(FirstConnects, AClientThatHasGivenUpLetsItsServerGo) {
  start();
  knock();
  wait(PendingConnects::kPause - 1ms);
  EXPECT_FALSE(tcp().opened()[0]->reset);
  EXPECT_LE(proxy_->deadline(), clock_.now() + 1ms);
  wait(1ms);
  EXPECT_TRUE(tcp().opened()[0]->reset);
  EXPECT_EQ(lanes_.alive(), 0u);
  EXPECT_EQ(figures().declined, 1u) << "its server has not accepted";
  EXPECT_EQ(figures().timedOut, 2u) << "at both ends";
  EXPECT_EQ(figures().reset, 0u) << "nobody has reset it";
}

TEST_F(FirstConnects, AClientThatNeverCompletesItsConnectionIsNotDeclined) {
  start();
  knock();
  answer(tcp().opened()[0]);
  wait(PendingConnects::kJoin);
  EXPECT_TRUE(tcp().opened()[0]->reset);
  EXPECT_EQ(figures().declined, 0u);
  EXPECT_EQ(figures().timedOut, 2u);
}

TEST_F(FirstConnects, AReloadToEarlyLetsThoseThatWaitGo) {
  start();
  knock();
  config_.streams.connect = StreamsConfig::Connect::kEarly;
  configure();
  settle();
  EXPECT_EQ(figures().connecting, 0u);
  EXPECT_EQ(figures().declined, 0u);
  EXPECT_TRUE(tcp().opened()[0]->reset);
}

TEST_F(FirstConnects, WhenDownDirectClearsConnectionMarks) {
  start();
  EXPECT_FALSE(tcp().taking()->clearsConnectionMark) << "they cost the host connection tracking";
  config_.device.whenDown = DeviceConfig::WhenDown::kDirect;
  configure();
  EXPECT_TRUE(tcp().taking()->clearsConnectionMark);
  config_.streams.connect = StreamsConfig::Connect::kEarly;
  configure();
  EXPECT_FALSE(tcp().taking()->clearsConnectionMark);
}

TEST_F(FirstConnects, TheEndLetsThoseThatWaitGo) {
  start();
  knock();
  proxy_->stop();
  EXPECT_EQ(figures().connecting, 0u);
  EXPECT_FALSE(tcp().taking());
}

}  // namespace
}  // namespace braid::first_connects_test
