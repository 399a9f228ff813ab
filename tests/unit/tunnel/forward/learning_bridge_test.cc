#include "tunnel/forward/router.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "tests/unit/tunnel/peer/puppets.h"

namespace braid::learning_bridge_test {
namespace {

MacAddress mac(uint32_t number) {
  MacAddress m{2};
  store32(&m[2], number);
  return m;
}

struct LearningBridgeTest : testing::Test {
  TunnelOptions options;
  PacketPool pool{2048, 64};
  test::PuppetProvider handshakes;
  EventQueue events;
  PacketEventQueue packets;
  SessionIndex sessions;
  AttemptIndex attempts;
  SharedResources shared;
  PeerContext context{options, pool, handshakes, events, packets, shared, sessions, attempts};
  SecretRandom random{knownKey(1)};
  Peer one{{}, context, random, Time{}};
  Peer two{{}, context, random, Time{}};
  Peer three{{}, context, random, Time{}};
  std::set<const Peer*> down;
  BridgeOptions bridge;
  LearningBridge table{bridge, [this](const Peer& peer) { return !down.contains(&peer); }};
  Time now = Time{} + 1s;

  static constexpr Peer* kDevice = nullptr;
  /// The port for frames to this address; nullopt: all ports (flooding).
  std::optional<Peer*> find(const MacAddress& to) {
    Frame frame;
    frame.dst = to;
    frame.isMulticast = to[0] & 1;
    LearningBridge::Way way = table.wayTo(frame, now);
    return way.known ? std::optional(way.peer) : std::nullopt;
  }
  bool admit(uint32_t number, Peer* from) { return table.admit(mac(number), from, now); }
  bool carries(const MacAddress& to, uint16_t type) {
    Frame frame;
    frame.dst = to;
    frame.etherType = type;
    return table.carries(frame);
  }
  /// Learns `count` further addresses. Returns how many the table stored.
  size_t fill(Peer* from, uint32_t first, uint32_t count) {
    size_t known = 0;
    for (uint32_t i = first; i < first + count; ++i) {
      EXPECT_TRUE(admit(i, from));
      known += find(mac(i)) ? 1 : 0;
    }
    return known;
  }
};

// ---------------------------------------------------------------- where an address is

TEST_F(LearningBridgeTest, WhoClaimsAnAddressDoesNotGetIt) {
  EXPECT_EQ(find(mac(1)), std::nullopt);
  EXPECT_TRUE(admit(1, &one));
  EXPECT_EQ(find(mac(1)), &one);
  EXPECT_FALSE(admit(1, &two));
  EXPECT_EQ(find(mac(1)), &one);
  EXPECT_TRUE(admit(1, &one));
}

TEST_F(LearningBridgeTest, AnAddressOfThisSideIsNoPeers) {
  EXPECT_TRUE(admit(1, kDevice));
  down.insert(&one);
  EXPECT_FALSE(admit(1, &one));
  EXPECT_EQ(find(mac(1)), kDevice);
}

TEST_F(LearningBridgeTest, TheDevicesWordHoldsAtOnceAndForGood) {
  EXPECT_TRUE(admit(1, &one));
  EXPECT_TRUE(admit(1, kDevice));
  EXPECT_EQ(find(mac(1)), kDevice);
  EXPECT_FALSE(admit(1, &one)) << "it has left";
  EXPECT_EQ(find(mac(1)), kDevice);
}

TEST_F(LearningBridgeTest, WhatIsNotHeardOfAgainIsForgottenAndMayTurnUpElsewhere) {
  EXPECT_TRUE(admit(1, &one));
  now += bridge.macAge - 1ns;
  EXPECT_EQ(find(mac(1)), &one);
  EXPECT_FALSE(admit(1, &two)) << "nor do vain tries keep it young";
  now += 1ns;
  EXPECT_EQ(find(mac(1)), std::nullopt);
  EXPECT_TRUE(admit(1, &two));
  EXPECT_EQ(find(mac(1)), &two);
}

TEST_F(LearningBridgeTest, WhoSpeaksKeepsItsPlaceForever) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(admit(1, &one));
    now += bridge.macAge - 1s;
    EXPECT_FALSE(admit(1, &two));
  }
}

TEST_F(LearningBridgeTest, WhatIsBehindAPeerThatIsDownMayTurnUpElsewhere) {
  EXPECT_TRUE(admit(1, &one));
  down.insert(&one);
  EXPECT_EQ(find(mac(1)), &one) << "nobody else has it";
  EXPECT_TRUE(admit(1, &two));
  EXPECT_EQ(find(mac(1)), &two);
}

// A host that was silent or disconnected while another host took its address.
TEST_F(LearningBridgeTest, WhoseAddressWasTakenHasItBackWithTheFirstFrame) {
  for (bool silent : {true, false}) {
    uint32_t number = silent ? 1 : 2;
    EXPECT_TRUE(admit(number, &one));
    if (silent) now += bridge.macAge;
    if (!silent) down.insert(&one);
    EXPECT_TRUE(admit(number, &two));
    down.clear();
    EXPECT_FALSE(admit(number, &three));
    EXPECT_TRUE(admit(number, &one));
    EXPECT_EQ(find(mac(number)), &one);
    EXPECT_FALSE(admit(number, &two)) << "it does not go to and fro";
    EXPECT_EQ(find(mac(number)), &one);
  }
}

TEST_F(LearningBridgeTest, TheAgeIsASetting) {
  EXPECT_TRUE(admit(1, &one));
  bridge.macAge = 3s;
  now += 3s;
  EXPECT_TRUE(admit(1, &two));
}

// ---------------------------------------------------------------- room

TEST_F(LearningBridgeTest, APeerCannotPushOthersOut) {
  constexpr uint32_t kMost = LearningBridge::kMaxMacs;
  EXPECT_TRUE(admit(1'000'001, kDevice));
  EXPECT_TRUE(admit(1'000'002, &two));
  EXPECT_EQ(fill(&one, 0, kMost - 2), kMost - 2) << "what the others leave";
  EXPECT_EQ(fill(&one, kMost, 10'000), 0u);
  EXPECT_EQ(find(mac(1'000'001)), kDevice);
  EXPECT_EQ(find(mac(1'000'002)), &two);
  EXPECT_EQ(find(mac(0)), &one);
  EXPECT_EQ(fill(&two, 2'000'000, kMost), kMost / 3) << "its share is taken from who has most";
  EXPECT_EQ(find(mac(0)), std::nullopt) << "the oldest of those";
  EXPECT_EQ(find(mac(kMost - 3)), &one);
  EXPECT_EQ(find(mac(1'000'001)), kDevice);
  EXPECT_EQ(find(mac(1'000'002)), &two);
}

TEST_F(LearningBridgeTest, AFullTableTakesNewAddressesWhenOldOnesAreForgotten) {
  fill(&one, 0, LearningBridge::kMaxMacs);
  EXPECT_EQ(fill(&one, 100000, 1), 0u);
  now += bridge.macAge - 1s;
  EXPECT_TRUE(admit(0, &one));
  now += 1s;
  EXPECT_EQ(fill(&one, 100000, 1), 1u);
  EXPECT_EQ(find(mac(0)), &one) << "it was heard of again";
}

TEST_F(LearningBridgeTest, PeersThatAreGoneTakeTheirAddressesWithThem) {
  EXPECT_TRUE(admit(1, &one));
  EXPECT_TRUE(admit(2, &two));
  EXPECT_TRUE(admit(3, &one));
  down.insert(&one);
  EXPECT_TRUE(admit(3, &two));
  table.forgetPeers([&](const Peer& p) { return &p == &one; });
  EXPECT_EQ(find(mac(1)), std::nullopt);
  EXPECT_EQ(find(mac(2)), &two);
  EXPECT_FALSE(admit(3, &three));
  EXPECT_EQ(find(mac(3)), &two);
}

// ---------------------------------------------------------------- what crosses, and how much of it

TEST_F(LearningBridgeTest, OnlyTheTypesOfTheListCross) {
  for (uint16_t type : {Frame::kIpV4, Frame::kArp, Frame::kIpV6})
    EXPECT_TRUE(carries(mac(1), type)) << type;
  // Types in which IP may be hidden: PPPoE, MPLS, 802.1X, a third VLAN tag, IEEE 802.3 with SNAP.
  for (uint16_t type : {0x8863, 0x8864, 0x8847, 0x888e, 0x8100, 0x05dc})
    EXPECT_FALSE(carries(mac(1), type)) << type;
  bridge.etherTypes = {0x8863, 0x8864};
  EXPECT_TRUE(carries(mac(1), 0x8864));
  EXPECT_FALSE(carries(mac(1), Frame::kIpV4));
  bridge.allTypes = true;
  EXPECT_TRUE(carries(mac(1), Frame::kIpV4));
  EXPECT_TRUE(carries(mac(1), 0x05dc));
}

TEST_F(LearningBridgeTest, WhatIsForTheNextBridgeGoesNoFurther) {
  bridge.allTypes = true;
  for (uint8_t last = 0; last < 0x10; ++last) {
    EXPECT_FALSE(carries({0x01, 0x80, 0xc2, 0, 0, last}, 0x88cc)) << unsigned{last};
    EXPECT_FALSE(carries({0x01, 0x80, 0xc2, 0, 0, last}, 0x26)) << unsigned{last};
  }
  EXPECT_TRUE(carries({0x01, 0x80, 0xc2, 0, 0, 0x10}, 0x26));
  bridge.spanningTree = true;
  EXPECT_TRUE(carries({0x01, 0x80, 0xc2, 0, 0, 0}, 0x26)) << "STP, when it is asked for";
  EXPECT_FALSE(carries({0x01, 0x80, 0xc2, 0, 0, 0}, 0x88cc)) << "LLDP";
  EXPECT_FALSE(carries({0x01, 0x80, 0xc2, 0, 0, 2}, 0x26));
}

TEST_F(LearningBridgeTest, EachPortHasARationOfFramesForAll) {
  auto flood = [&](Peer* from) {
    uint32_t sent = 0;
    for (int i = 0; i < 10'000; ++i) sent += table.mayFlood(from, now) ? 1 : 0;
    return sent;
  };
  EXPECT_EQ(flood(&one), 250u);
  EXPECT_EQ(flood(&two), 250u) << "its own";
  EXPECT_EQ(flood(kDevice), 250u);
  now += 100ms;
  EXPECT_EQ(flood(&one), 100u);
  bridge.floodLimit = 1;
  now += 1s;
  EXPECT_EQ(flood(&one), 1u);
}

}  // namespace
}  // namespace braid::learning_bridge_test
