// The benefit of streams, and how they end, between two complete gateways.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "tests/sim/scenario.h"

namespace braid::sim::stream_scenarios_test {
namespace {

TunnelOptions withStreams() {
  TunnelOptions o;
  o.streams.on = true;
  return o;
}

/// Clients behind the edge and a server behind the hub, which answers each request of kRequest
/// bytes with `answer` bytes.
class Web {
 public:
  static constexpr size_t kRequest = 300;

  Web(Scenario& s, size_t answer) : s_(s), answer_(answer) {
    s.hub.onStream = [this](const StreamEvent& e) { serve(e); };
    s.edge.onStream = [this](const StreamEvent& e) { take(e); };
  }
  struct Client {
    Time began;
    size_t got = 0;
    bool stalls = false;
    std::optional<Duration> took;
    std::optional<StreamCause> reset;
    Time resetAt;
  };
  std::optional<StreamHandle> connect(bool stalls = false) {
    StreamEnds ends{{s_.edge.host(), port_++}, {s_.hub.host(), 443}};
    StreamHandle h = s_.edge.streams().open(ends, s_.edge.clock());
    if (!h) return std::nullopt;
    clients[h] = {s_.world.now(), 0, stalls, {}, {}, {}};
    std::vector<uint8_t> request(kRequest, 1);
    EXPECT_EQ(s_.edge.streams().write(h, request, s_.edge.clock()), kRequest);
    s_.edge.streams().finish(h, s_.edge.clock());
    return h;
  }
  std::map<StreamHandle, Client> clients;
  std::map<StreamHandle, size_t> left;  ///< to answer
  std::map<StreamHandle, StreamCause> serverResets;

 private:
  void serve(const StreamEvent& e) {
    StreamApi& lanes = s_.hub.streams();
    if (e.opened) left[e.stream] = answer_;
    if (e.reset) serverResets[e.stream] = *e.reset;
    std::vector<uint8_t> bytes(65536, 2);
    lanes.read(e.stream, bytes, s_.hub.clock());
    if (!lanes.isAtEnd(e.stream)) return;
    size_t& rest = left[e.stream];
    while (rest > 0) {
      size_t taken = lanes.write(e.stream, ByteView(bytes).first(std::min(rest, bytes.size())),
                                 s_.hub.clock());
      if (taken == 0) {
        lanes.writable(e.stream, rest);
        return;
      }
      rest -= taken;
    }
    lanes.finish(e.stream, s_.hub.clock());
  }
  void take(const StreamEvent& e) {
    auto found = clients.find(e.stream);
    if (found == clients.end()) return;
    Client& c = found->second;
    if (e.reset) c.reset = e.reset, c.resetAt = s_.world.now();
    if (c.stalls) return;
    StreamApi& lanes = s_.edge.streams();
    std::vector<uint8_t> bytes(65536);
    while (size_t n = lanes.read(e.stream, bytes, s_.edge.clock())) c.got += n;
    if ((c.got == answer_) && !c.took) c.took = s_.world.now() - c.began;
  }

  Scenario& s_;
  size_t answer_;
  uint16_t port_ = 1000;
};

Scenario& twoPaths(Scenario& s, double loss) {
  LinkOptions path{.rateBitsPerSecond = 100_Mbit, .delay = 25ms};
  s.path("clean", path);
  path.loss = loss;
  s.path("lossy", path);
  return s.start();
}

TEST(StreamScenarios, AnAnswerComesInOneRoundTripAndTheTimeOfItsBytes) {
  Scenario s(1, withStreams());
  twoPaths(s, 0);
  s.run(1s);
  // An earlier download has opened the windows.
  {
    Web warm(s, 4'000'000);
    warm.connect();
    s.run(3s);
    ASSERT_TRUE(warm.clients.begin()->second.took);
  }
  Web web(s, 200'000);
  web.connect();
  s.run(1s);
  const Web::Client& c = web.clients.begin()->second;
  ASSERT_TRUE(c.took) << c.got;
  // The RTT is 50 ms, and 200 KB at 2 x 100 Mbit/s take 8 ms. A separate TCP connection would take
  // four round trips.
  EXPECT_LE(toMilliseconds(*c.took), 80);
}

TEST(StreamScenarios, LossOnOnePathIsNotFelt) {
  Scenario s(2, withStreams());
  twoPaths(s, 0.02);
  s.run(1s);
  Web web(s, 40'000);
  std::vector<Duration> took;
  for (int i = 0; i < 100; ++i) {
    web.connect();
    s.run(100ms);
  }
  s.run(3s);
  for (auto& [h, c] : web.clients) {
    ASSERT_TRUE(c.took) << c.got;
    took.push_back(*c.took);
  }
  std::sort(took.begin(), took.end());
  EXPECT_LE(toMilliseconds(took[98]), 130) << "the 99th of 100";
}

TEST(StreamScenarios, ADownloadGetsTheSumOfThePaths) {
  Scenario s(3, withStreams());
  twoPaths(s, 0.01);
  s.run(1s);
  constexpr size_t kSize = 60'000'000;
  Web web(s, kSize);
  web.connect();
  s.run(4s);
  const Web::Client& c = web.clients.begin()->second;
  ASSERT_TRUE(c.took) << c.got;
  EXPECT_GE(kSize * 8 / toSeconds(*c.took), 150e6) << s.report();
}

TEST(StreamScenarios, ASlowReaderHoldsNoOther) {
  Scenario s(4, withStreams());
  twoPaths(s, 0);
  s.run(1s);
  Web web(s, 5'000'000);
  web.connect(true);
  s.run(500ms);
  auto quick = web.connect();
  s.run(3s);
  EXPECT_TRUE(web.clients[*quick].took);
  TunnelStatus status = s.edge.status();
  EXPECT_LE(status.peers[0].streamsHeldBytes, 2 * s.edge.options.streams.firstCredit);
}

TEST(StreamScenarios, WhenAGatewayDiesTheOtherEndIsResetWithinSeconds) {
  for (bool hubDies : {true, false}) {
    Scenario s(5, withStreams());
    twoPaths(s, 0);
    s.run(1s);
    Web web(s, 50'000'000);
    auto h = web.connect();
    s.run(500ms);
    ASSERT_TRUE(h);
    Time died = s.world.now();
    Node& victim = hubDies ? s.hub : s.edge;
    EXPECT_TRUE(victim.stop());
    victim.start();
    s.run(10s);
    if (hubDies) {
      EXPECT_EQ(web.clients[*h].reset, StreamCause::kGone);
      EXPECT_LE(toSeconds(web.clients[*h].resetAt - died), 5);
    } else {
      ASSERT_EQ(web.serverResets.size(), 1u);
      EXPECT_EQ(web.serverResets.begin()->second, StreamCause::kGone);
    }
  }
}

// Connections that are already being taken over wait, like a SYN that is retransmitted. They must
// not be refused.
TEST(StreamScenarios, AConnectionThatComesWhileThePathsAreSilentWaitsForThem) {
  Scenario s(9, withStreams());
  twoPaths(s, 0);
  s.run(1s);
  Web web(s, 10'000);
  s.cut("clean").cut("lossy");
  auto first = web.connect();
  s.run(1s);
  ASSERT_TRUE(first);
  EXPECT_FALSE(s.edge.streams().canOpen(s.hub.host())) << "new ones stay packets";
  auto second = web.connect();
  ASSERT_TRUE(second);
  s.mend("clean").mend("lossy").run(3s);
  EXPECT_TRUE(web.clients[*first].took);
  EXPECT_TRUE(web.clients[*second].took);
}

TEST(StreamScenarios, AStreamThatIsIdleForDaysGoesOn) {
  Scenario s(10, withStreams());
  twoPaths(s, 0.01);
  s.run(1s);
  Web web(s, 10'000);
  StreamHandle h =
      s.edge.streams().open({{s.edge.host(), 999}, {s.hub.host(), 443}}, s.edge.clock());
  ASSERT_TRUE(h);
  web.clients[h] = {s.world.now(), 0, false, {}, {}, {}};
  s.edge.streams().write(h, std::vector<uint8_t>(Web::kRequest, 1), s.edge.clock());
  s.run(48h);
  EXPECT_FALSE(web.clients[h].reset);
  s.edge.streams().finish(h, s.edge.clock());
  s.run(2s);
  EXPECT_EQ(web.clients[h].got, 10'000u);
}

TEST(StreamScenarios, ASourceThatIsNotThePeersIsForbidden) {
  RecordProperty("rule", "stream.source");
  Scenario s(6, withStreams());
  twoPaths(s, 0);
  s.run(1s);
  std::optional<StreamCause> cause;
  bool heard = false;
  s.edge.onStream = [&](const StreamEvent& e) { cause = e.reset; };
  s.hub.onStream = [&](const StreamEvent&) { heard = true; };
  StreamEnds ends{{*Address::parse("203.0.113.77"), 1}, {s.hub.host(), 443}};
  ASSERT_TRUE(s.edge.streams().open(ends, s.edge.clock()));
  s.run(1s);
  EXPECT_EQ(cause, StreamCause::kForbidden);
  EXPECT_FALSE(heard);
}

TEST(StreamScenarios, ASpecialDestinationIsForbidden) {
  RecordProperty("rule", "stream.destination");
  Scenario s(6, withStreams());
  twoPaths(s, 0);
  s.edge.peers[0].prefixes = {*Prefix::parse("0.0.0.0/0")};
  s.edge.tunnel().setPeers(s.edge.peers, s.world.now());
  s.run(1s);
  std::optional<StreamCause> cause;
  size_t heard = 0;
  s.edge.onStream = [&](const StreamEvent& e) { cause = e.reset; };
  s.hub.onStream = [&](const StreamEvent& e) { heard += e.opened; };
  auto open = [&](const char* to) {
    cause.reset();
    StreamEnds ends{{s.edge.host(), 1}, {*Address::parse(to), 80}};
    ASSERT_TRUE(s.edge.streams().open(ends, s.edge.clock())) << to;
    s.run(200ms);
  };
  for (const char* to :
       {"169.254.169.254", "127.0.0.1", "168.63.129.16", "100.100.100.200", "0.0.0.0"}) {
    open(to);
    EXPECT_EQ(cause, StreamCause::kForbidden) << to;
  }
  EXPECT_EQ(heard, 0u);
  s.hub.tunnel().setLocalNetworks({*Prefix::parse("169.254.169.254/32")});
  open("169.254.169.254");
  EXPECT_EQ(heard, 1u) << "an operator who names it wants it reached";
}

TEST(StreamScenarios, APeerWithoutStreamsGetsNone) {
  Scenario s(7, withStreams());
  s.hub.options.streams.on = false;
  twoPaths(s, 0);
  s.run(2s);
  EXPECT_FALSE(s.edge.streams().canOpen(s.hub.host()));
  EXPECT_FALSE(s.edge.streams().canOpen(*Address::parse("203.0.113.1"))) << "nor does nobody";
}

TEST(StreamScenarios, WhatStatusSaysIsSo) {
  Scenario s(8, withStreams());
  twoPaths(s, 0);
  s.run(1s);
  Web web(s, 1'000'000);
  auto h = web.connect(true);
  s.run(500ms);
  TunnelStatus edge = s.edge.status(), hub = s.hub.status();
  ASSERT_EQ(edge.peers[0].streams.size(), 1u);
  const StreamStatus& here = edge.peers[0].streams[0];
  const StreamStatus& there = hub.peers[0].streams[0];
  EXPECT_EQ(here.name, there.name);
  EXPECT_EQ(here.state, "sent");
  EXPECT_EQ(here.sentBytes, Web::kRequest);
  EXPECT_EQ(there.receivedBytes, Web::kRequest);
  EXPECT_EQ(here.receivedBytes, s.edge.options.streams.firstCredit);
  EXPECT_GE(toMilliseconds(here.firstByte), 50);
  EXPECT_LE(toMilliseconds(here.firstByte), 60);
  EXPECT_EQ(edge.peers[0].streamsOpened, 1u);
  EXPECT_EQ(hub.peers[0].streamsAccepted, 1u);
  s.edge.streams().reset(*h, StreamCause::kReset, s.edge.clock());
  s.run(200ms);
  EXPECT_EQ(s.hub.status().peers[0].streamsReset, 1u);
  EXPECT_EQ(s.edge.status().peers[0].streamCount, 0u);
}

}  // namespace
}  // namespace braid::sim::stream_scenarios_test
