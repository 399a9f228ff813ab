#include "inet/frame.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"

namespace braid::frame_test {
namespace {

using test::Bytes;

constexpr MacAddress kHost = {2, 0, 0, 0, 0, 1};
constexpr MacAddress kRouter = {2, 0, 0, 0, 0, 2};
constexpr MacAddress kBroadcast = {255, 255, 255, 255, 255, 255};

/// Each pair of `types` but the last is a tag: EtherType of the tag, tag control information.
Bytes frame(const MacAddress& dst, std::initializer_list<uint16_t> types, const Bytes& payload) {
  Bytes b(dst.begin(), dst.end());
  b.insert(b.end(), kHost.begin(), kHost.end());
  for (uint16_t word : types)
    test::append(b, {static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word)});
  test::append(b, payload);
  return b;
}

Bytes arp(uint16_t operation) {
  Bytes b = {0, 1, 8, 0, 6, 4, 0, static_cast<uint8_t>(operation)};
  test::append(b, {2, 0, 0, 0, 0, 1, 10, 0, 0, 1});
  test::append(b, {0, 0, 0, 0, 0, 0, 10, 0, 0, 2});
  return b;
}

TEST(FrameTest, UntaggedIp) {
  Bytes packet = test::tcpV4({.payload = {1}});
  Frame f = parseFrame(frame(kRouter, {Frame::kIpV4}, packet)).value();
  EXPECT_EQ(f.dst, kRouter);
  EXPECT_EQ(f.src, kHost);
  EXPECT_FALSE(f.isMulticast);
  EXPECT_FALSE(f.isBroadcast);
  EXPECT_EQ(f.vlanTags, 0);
  EXPECT_EQ(f.etherType, Frame::kIpV4);
  EXPECT_EQ(f.payloadOffset, 14u);
  ASSERT_TRUE(f.ip);
  EXPECT_EQ(f.ip->flowKey().toString(), "tcp 10.0.0.1:443 > 10.0.0.2:5000");
  EXPECT_FALSE(f.arp);
}

TEST(FrameTest, PaddingIsNotThePacket) {
  Bytes b = frame(kRouter, {Frame::kIpV4}, test::v4({}, test::udp(1, 2, {})));
  b.resize(60);
  EXPECT_EQ(parseFrame(b)->ip->size, 28u);
}

TEST(FrameTest, VlanTags) {
  Frame one =
      parseFrame(frame(kRouter, {Frame::kVlan, 0xe064, Frame::kIpV6}, test::tcpV6({}))).value();
  EXPECT_EQ(one.vlanTags, 1);
  EXPECT_EQ(one.vlans[0], 100);
  EXPECT_EQ(one.payloadOffset, 18u);
  EXPECT_TRUE(one.ip && one.ip->isV6());

  Bytes two =
      frame(kRouter, {Frame::kServiceVlan, 7, Frame::kVlan, 4095, Frame::kIpV4}, test::tcpV4({}));
  Frame f = parseFrame(two).value();
  EXPECT_EQ(f.vlanTags, 2);
  EXPECT_EQ(f.vlans, (std::array<uint16_t, 2>{7, 4095}));
  EXPECT_EQ(f.payloadOffset, 22u);
  EXPECT_TRUE(f.ip);
}

TEST(FrameTest, AThirdTagIsOpaque) {
  Bytes three = frame(kRouter, {Frame::kVlan, 1, Frame::kVlan, 2, Frame::kVlan, 3, Frame::kIpV4},
                      test::tcpV4({}));
  Frame f = parseFrame(three).value();
  EXPECT_EQ(f.vlanTags, 2);
  EXPECT_EQ(f.etherType, Frame::kVlan);
  EXPECT_FALSE(f.ip);
}

TEST(FrameTest, GroupAddresses) {
  Frame broadcast = parseFrame(frame(kBroadcast, {0x88cc}, {})).value();
  EXPECT_TRUE(broadcast.isBroadcast);
  EXPECT_TRUE(broadcast.isMulticast);
  Frame multicast = parseFrame(frame({1, 0, 0x5e, 0, 0, 1}, {0x88cc}, {})).value();
  EXPECT_FALSE(multicast.isBroadcast);
  EXPECT_TRUE(multicast.isMulticast);
  EXPECT_EQ(multicast.payloadOffset, 14u);
}

TEST(FrameTest, Arp) {
  Frame f = parseFrame(frame(kBroadcast, {Frame::kArp}, arp(ArpFields::kRequest))).value();
  ASSERT_TRUE(f.arp);
  EXPECT_EQ(f.arp->operation, ArpFields::kRequest);
  EXPECT_EQ(f.arp->senderMac, kHost);
  EXPECT_EQ(f.arp->sender, test::addr("10.0.0.1"));
  EXPECT_EQ(f.arp->targetMac, MacAddress{});
  EXPECT_EQ(f.arp->target, test::addr("10.0.0.2"));
  EXPECT_FALSE(f.ip);
}

TEST(FrameTest, MalformedArpIsAbsent) {
  const Bytes good = arp(ArpFields::kReply);
  for (size_t n = 0; n < good.size(); ++n) {
    auto f = parseFrame(
        frame(kHost, {Frame::kArp}, Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(n))));
    ASSERT_TRUE(f);
    EXPECT_FALSE(f->arp) << n;
  }
  for (size_t i = 0; i < 6; ++i) {  // hardware and protocol type and their address lengths
    Bytes bad = good;
    bad[i] ^= 1;
    EXPECT_FALSE(parseFrame(frame(kHost, {Frame::kArp}, bad))->arp) << i;
  }
}

TEST(FrameTest, MalformedOrMismatchedIpIsAbsent) {
  EXPECT_FALSE(parseFrame(frame(kHost, {Frame::kIpV4}, {}))->ip);
  EXPECT_FALSE(parseFrame(frame(kHost, {Frame::kIpV4}, test::tcpV6({})))->ip);
  EXPECT_FALSE(parseFrame(frame(kHost, {Frame::kIpV6}, test::tcpV4({})))->ip);
  EXPECT_FALSE(parseFrame(frame(kHost, {0x0600}, test::tcpV4({})))->ip);
}

TEST(FrameTest, CutHeadersAreRefused) {
  Bytes b = frame(kHost, {Frame::kServiceVlan, 7, Frame::kVlan, 8, 0x88cc}, {});
  ASSERT_TRUE(parseFrame(b));
  for (size_t n = 0; n < b.size(); ++n) EXPECT_FALSE(parseFrame(ByteView(b).first(n))) << n;
}

}  // namespace
}  // namespace braid::frame_test
