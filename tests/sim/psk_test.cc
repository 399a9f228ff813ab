// Peers with a pre-shared key (PeerOptions::psk): the same at both sides, another one, or at one
// side only.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/scenario.h"
#include "tunnel/peer/session_index.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/header.h"

namespace braid::sim::psk_test {
namespace {

constexpr const char* kRefusal = "pre-shared key differs or is set on one side only";

std::optional<PresharedKey> key(uint8_t first) {
  if (first == 0) return std::nullopt;
  return PresharedKey({first, 2, 3});
}

/// An edge and a hub, each with a pre-shared key that begins with this byte; 0: without one.
struct Pair : Scenario {
  std::vector<Bytes> notices;  ///< key notices on the wire

  explicit Pair(uint64_t seed, uint8_t ofEdge, uint8_t ofHub, TunnelOptions options = {})
      : Scenario(seed, options) {
    path("dsl", kDsl).path("lte", kLte);
    edge.peers[0].psk = key(ofEdge);
    hub.peers[0].psk = key(ofHub);
    world.onWire = [this](Path&, bool up, const WireDatagram& d) {
      if (!isKeyNotice(d.bytes)) return;
      EXPECT_FALSE(up) << "an initiator sends none";
      notices.push_back(d.bytes);
    };
  }
  /// Gives a running gateway another key, as a reload does.
  Pair& give(Node& node, uint8_t first) {
    node.peers[0].psk = key(first);
    node.tunnel().setPeers(node.peers, node.clock());
    node.streams();  // it is polled
    return *this;
  }
  bool comesUp(Duration within) {
    return world.runUntil([this] { return isUp(); }, within);
  }
  std::string refusalOf(const Node& node) const { return node.status().peers[0].refusal; }
  size_t told(const Node& node) const {
    return static_cast<size_t>(std::ranges::count_if(node.events, [](const auto& e) {
      return e.second.kind == Event::Kind::kHandshakeFailed &&
             e.second.text.starts_with(kRefusal) && !e.second.peer.empty();
    }));
  }
};

struct PresharedKeys : testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, PresharedKeys, testing::Values(1, 2, 3));

TEST_P(PresharedKeys, ThatAreEqualCarryDataAndAreRenewed) {
  TunnelOptions options;
  options.rekeyAfter = 10s;
  Pair s(GetParam(), 7, 7, options);
  s.start();
  TcpFlow& file = s.download(2_MB);
  ASSERT_TRUE(s.finish(file, 20s)) << s.report();
  s.run(60s);
  EXPECT_GE(s.edge.status().peers[0].keyGeneration, 4u);
  EXPECT_EQ(s.edge.drops(Drop::kBadSeal) + s.hub.drops(Drop::kBadSeal), 0u);
  EXPECT_TRUE(s.notices.empty());
  EXPECT_EQ(s.refusalOf(s.edge) + s.refusalOf(s.hub), "");
}

// Nothing may be delivered, in either direction, and both operators are told within seconds.
TEST_P(PresharedKeys, ThatDifferOrAreOnOneSideAreRefusedAndBothAreTold) {
  for (auto [ofEdge, ofHub] : {std::pair{7, 0}, {0, 7}, {7, 8}}) {
    Pair s(GetParam(), static_cast<uint8_t>(ofEdge), static_cast<uint8_t>(ofHub));
    s.world.start();
    UdpFlow& up = s.call({.interval = 100ms, .count = 100});
    UdpFlow& down = s.call({.interval = 100ms, .count = 100}, true);
    s.run(3s);
    for (Node* node : {&s.edge, &s.hub}) {
      EXPECT_EQ(s.refusalOf(*node), kRefusal) << ofEdge << ofHub << node->name();
      EXPECT_GE(s.told(*node), 1u) << ofEdge << ofHub << node->name();
    }
    s.run(57s);
    EXPECT_FALSE(s.isUp());
    EXPECT_EQ(up.received() + down.received(), 0u);
    EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerUp) + s.hub.countEvents(Event::Kind::kPeerUp),
              0u);
    EXPECT_LE(s.hub.handshakes().accepted(), 16u) << "with pauses that grow";
    EXPECT_LE(s.notices.size(), 16u * PendingSessions::kMostKeyNotices);
  }
}

TEST_P(PresharedKeys, ThatAreChangedEndTheSessionAndTheNextOneHasThem) {
  for (bool edgeFirst : {true, false}) {
    Pair s(GetParam(), 0, 0);
    s.start().run(5s);
    s.give(edgeFirst ? s.edge : s.hub, 7);
    EXPECT_FALSE(s.isUp()) << "at once";
    UdpFlow& call = s.call({.interval = 10ms, .count = 300}, !edgeFirst);
    s.run(3s);
    EXPECT_EQ(call.received(), 0u) << "under keys of which one side knows nothing";
    for (Node* node : {&s.edge, &s.hub}) EXPECT_EQ(s.refusalOf(*node), kRefusal) << node->name();
    s.give(edgeFirst ? s.hub : s.edge, 7);
    ASSERT_TRUE(s.comesUp(10s)) << edgeFirst << s.report();
    for (Node* node : {&s.edge, &s.hub}) EXPECT_EQ(s.refusalOf(*node), "") << node->name();
    Ping& ping = s.ping(50ms, 20);
    s.run(3s);
    EXPECT_EQ(ping.answered(), 20u);
    // the same configuration again ends nothing
    Duration age = s.edge.status().peers[0].age;
    s.give(s.edge, 7).give(s.hub, 7).run(1s);
    EXPECT_GE(s.edge.status().peers[0].age, age + 1s);
  }
}

// An attacker that can send forged datagrams, but drop none, causes no notice by them: what the
// initiator sends opens.
TEST_P(PresharedKeys, AForgedDatagramInANewSessionCausesNoNotice) {
  Pair s(GetParam(), 7, 7);
  auto before = s.world.onWire;
  std::optional<std::pair<Route, Bytes>> forged;
  s.world.onWire = [&](Path& path, bool up, const WireDatagram& d) {
    before(path, up, d);
    if (!up || forged || !isSessionDatagram(d.bytes)) return;
    forged.emplace(Route{path.far().socket, {}, path.outside()}, d.bytes);
    forged->second.back() ^= 1;
    s.world.inject(s.hub, forged->first, forged->second);
  };
  s.start();
  s.run(700ms);
  ASSERT_TRUE(forged);
  forged->second[8] ^= 1;  // another packet number, or it would count as a replay
  s.world.inject(s.hub, forged->first, forged->second);
  s.run(2s);
  EXPECT_EQ(s.hub.drops(Drop::kBadSeal), 2u);
  EXPECT_TRUE(s.notices.empty());
  EXPECT_TRUE(s.isUp());
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerUp), 1u);
}

TEST_P(PresharedKeys, AForgedOrALateNoticeEndsNothing) {
  Pair s(GetParam(), 7, 7);
  const Path& dsl = s.world.path("dsl");
  auto toEdge = [&](ByteView bytes) {
    s.world.inject(s.edge, {dsl.near().socket, {}, dsl.far().endpoint}, bytes);
  };
  // The session's id is seen on the wire, its token never is.
  auto before = s.world.onWire;
  std::optional<uint32_t> id;
  size_t sent = 0;
  s.world.onWire = [&](Path& path, bool up, const WireDatagram& d) {
    before(path, up, d);
    if (up && isSessionDatagram(d.bytes)) id = readHeader(d.bytes)->session;
  };
  auto send = [&](size_t size) {
    Bytes notice(size);
    notice[0] = 0x24;
    store32(&notice[1], id.value_or(0));
    toEdge(notice);
    ++sent;
  };
  s.world.start();
  ASSERT_TRUE(s.world.runUntil([&] { return id.has_value(); }, 5s));
  for (size_t size : {20u, 21u, 22u}) send(size);
  ASSERT_TRUE(s.comesUp(2s));
  send(21);
  EXPECT_EQ(s.edge.drops(Drop::kKeyNotice), sent);
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 0u);
  EXPECT_EQ(s.refusalOf(s.edge), "");
  // A true one, of a session that was refused meanwhile, comes again in the next session.
  s.give(s.hub, 8).run(3s);
  ASSERT_FALSE(s.notices.empty());
  s.give(s.hub, 7);
  ASSERT_TRUE(s.comesUp(10s));
  for (const Bytes& notice : s.notices) toEdge(notice);
  s.run(1s);
  EXPECT_TRUE(s.isUp());
  EXPECT_EQ(s.refusalOf(s.edge), "");
}

}  // namespace
}  // namespace braid::sim::psk_test
