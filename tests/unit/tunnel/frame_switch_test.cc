#include "tunnel/frame_switch.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/puppets.h"

namespace braid::frame_switch_test {
namespace {

MacAddress mac(uint32_t number) {
  MacAddress m{2};
  store32(&m[2], number);
  return m;
}

struct FrameSwitchTest : testing::Test {
  TunnelOptions options;
  PacketPool pool{2048, 64};
  test::PuppetProvider handshakes;
  test::PuppetOwner owner;
  EventQueue events;
  SessionIndex sessions;
  AttemptIndex attempts;
  PeerContext context{options, pool, handshakes, owner, events, sessions, attempts};
  SecretRandom random{knownKey(1)};
  Peer one{{}, context, random};
  Peer two{{}, context, random};
  FrameSwitch table;
  Time now = Time{} + 1s;

  Peer* find(const MacAddress& to) {
    Frame frame;
    frame.dst = to;
    frame.isMulticast = to[0] & 1;
    return table.peerFor(frame, now);
  }
};

TEST_F(FrameSwitchTest, AnAddressIsBehindThePeerThatItCameFromLast) {
  EXPECT_EQ(find(mac(1)), nullptr);
  table.learn(mac(1), one, now);
  EXPECT_EQ(find(mac(1)), &one);
  table.learn(mac(1), two, now);
  EXPECT_EQ(find(mac(1)), &two);
  table.forget(mac(1));
  EXPECT_EQ(find(mac(1)), nullptr);
}

TEST_F(FrameSwitchTest, GroupAddressesAreNoOnes) {
  MacAddress group = mac(1);
  group[0] |= 1;
  table.learn(group, one, now);
  EXPECT_EQ(find(group), nullptr);
}

TEST_F(FrameSwitchTest, WhatIsNotHeardAgainIsForgotten) {
  table.learn(mac(1), one, now);
  now += FrameSwitch::kMacAge - 1ns;
  EXPECT_EQ(find(mac(1)), &one);
  now += 1ns;
  EXPECT_EQ(find(mac(1)), nullptr);
}

TEST_F(FrameSwitchTest, AFullTableTakesNewAddressesWhenOldOnesAreForgotten) {
  for (uint32_t i = 0; i < FrameSwitch::kMaxMacs; ++i) table.learn(mac(i), one, now);
  table.learn(mac(100000), two, now);
  EXPECT_EQ(find(mac(100000)), nullptr);
  table.learn(mac(0), two, now);
  EXPECT_EQ(find(mac(0)), &two) << "one that is in it may move";
  now += FrameSwitch::kMacAge;
  table.learn(mac(100000), two, now);
  EXPECT_EQ(find(mac(100000)), &two);
}

TEST_F(FrameSwitchTest, PeersThatAreGoneTakeTheirAddressesWithThem) {
  table.learn(mac(1), one, now);
  table.learn(mac(2), two, now);
  table.forgetPeers([&](const Peer& p) { return &p == &one; });
  EXPECT_EQ(find(mac(1)), nullptr);
  EXPECT_EQ(find(mac(2)), &two);
}

}  // namespace
}  // namespace braid::frame_switch_test
