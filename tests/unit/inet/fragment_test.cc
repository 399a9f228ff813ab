#include "inet/ip.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tests/unit/inet/packets.h"

namespace braid::fragment_test {
namespace {

using test::Bytes;
using test::V4;

struct Cut {
  FragmentResult result;
  std::vector<Bytes> fragments;
};

Cut fragment(const Bytes& packet, uint16_t mtu, size_t poolLimit = 2000) {
  PacketPool pool(2000, poolLimit);
  Cut cut;
  cut.result = fragmentIpv4(pool, packet, mtu, [&](Packet p) {
    cut.fragments.emplace_back(p.view().begin(), p.view().end());
  });
  EXPECT_EQ(pool.inUse(), 0u);
  return cut;
}

uint16_t fieldOf(const Bytes& b) {
  return load16(&b[6]);
}
size_t offsetOf(const Bytes& b) {
  return (fieldOf(b) & ip::kV4FragmentOffset) * 8u;
}
bool moreOf(const Bytes& b) {
  return fieldOf(b) & ip::kV4MoreFragments;
}

/// Reassembles the payloads by their offsets.
Bytes reassembled(const std::vector<Bytes>& fragments, size_t base = 0) {
  Bytes all;
  for (const Bytes& f : fragments) {
    size_t at = offsetOf(f) - base;
    if (all.size() < at + f.size() - 20) all.resize(at + f.size() - 20);
    std::copy(f.begin() + 20, f.end(), all.begin() + static_cast<ptrdiff_t>(at));
  }
  return all;
}

TEST(FragmentTest, CutsInTwo) {
  Bytes payload = test::udp(1, 2, test::pattern(1472));
  Bytes packet = test::v4({.tos = 0xb9}, payload);
  Cut cut = fragment(packet, 1400);
  EXPECT_EQ(cut.result, FragmentResult::kDone);
  ASSERT_EQ(cut.fragments.size(), 2u);
  EXPECT_EQ(cut.fragments[0].size(), 20u + 1376);
  EXPECT_EQ(cut.fragments[1].size(), 20u + 104);
  EXPECT_EQ(fieldOf(cut.fragments[0]), ip::kV4MoreFragments);
  EXPECT_EQ(fieldOf(cut.fragments[1]), 1376 / 8);
  for (const Bytes& f : cut.fragments) {
    EXPECT_TRUE(test::v4ChecksumValid(f));
    EXPECT_EQ(load16(&f[2]), f.size());
    EXPECT_EQ(load16(&f[4]), 0x1234) << "identification";
    EXPECT_EQ(f[1], 0xb9) << "type of service";
    EXPECT_TRUE(std::equal(&f[12], &f[20], &packet[12])) << "addresses";
  }
  EXPECT_EQ(reassembled(cut.fragments), payload);
}

TEST(FragmentTest, EverySizeAndMtuComesTogetherAgain) {
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 300; ++round) {
    Bytes payload = test::pattern(random.below(3000));
    auto mtu = static_cast<uint16_t>(kMinimumV4Mtu + random.below(1500));
    Cut cut = fragment(test::v4({}, payload), mtu);
    ASSERT_EQ(cut.result, FragmentResult::kDone);
    for (size_t i = 0; i < cut.fragments.size(); ++i) {
      const Bytes& f = cut.fragments[i];
      ASSERT_LE(f.size(), mtu);
      ASSERT_TRUE(test::v4ChecksumValid(f));
      ASSERT_EQ(moreOf(f), i + 1 < cut.fragments.size());
      ASSERT_TRUE(parseInnerPacket(f));
    }
    ASSERT_EQ(reassembled(cut.fragments), payload) << "size " << payload.size() << " mtu " << mtu;
  }
}

TEST(FragmentTest, WhatFitsPassesUnchangedWithoutTrailingBytes) {
  Bytes packet =
      test::v4({.fragment = ip::kV4DontFragment, .options = {1, 1, 1, 0}}, test::pattern(100));
  Bytes longer = packet;
  longer.resize(longer.size() + 30);
  Cut cut = fragment(longer, 124);
  EXPECT_EQ(cut.result, FragmentResult::kDone);
  ASSERT_EQ(cut.fragments.size(), 1u);
  EXPECT_EQ(cut.fragments[0], packet);
}

TEST(FragmentTest, Refuses) {
  Bytes payload = test::pattern(1400);
  for (const Bytes& packet : {test::v4({.fragment = ip::kV4DontFragment}, payload),
                              test::v4({.options = {1, 1, 1, 0}}, payload), test::v6({}, payload),
                              Bytes{}, Bytes(1400, 0)}) {
    Cut cut = fragment(packet, 1000);
    EXPECT_EQ(cut.result, FragmentResult::kRefused);
    EXPECT_TRUE(cut.fragments.empty());
  }
  EXPECT_EQ(fragment(test::v4({}, payload), kMinimumV4Mtu - 1).result, FragmentResult::kRefused);
  EXPECT_EQ(fragment(test::v4({}, payload), kMinimumV4Mtu).result, FragmentResult::kDone);
}

TEST(FragmentTest, FragmentsOfAFragmentKeepOffsetAndMore) {
  Bytes payload = test::pattern(800);
  Cut middle = fragment(test::v4({.fragment = ip::kV4MoreFragments | 100}, payload), 400);
  ASSERT_EQ(middle.fragments.size(), 3u);
  for (const Bytes& f : middle.fragments) EXPECT_TRUE(moreOf(f));
  EXPECT_EQ(offsetOf(middle.fragments[0]), 800u);
  EXPECT_EQ(reassembled(middle.fragments, 800), payload);

  Cut last = fragment(test::v4({.fragment = 100}, payload), 400);
  EXPECT_TRUE(moreOf(last.fragments[1]));
  EXPECT_FALSE(moreOf(last.fragments[2]));
}

TEST(FragmentTest, MiddleFragmentOfOddLengthIsRefused) {
  Bytes packet = test::v4({.fragment = ip::kV4MoreFragments}, test::pattern(801));
  EXPECT_EQ(fragment(packet, 400).result, FragmentResult::kRefused);
  EXPECT_EQ(fragment(packet, 900).result, FragmentResult::kDone);
}

TEST(FragmentTest, OffsetNeverOverflows) {
  // 376 bytes per fragment at this MTU: the second begins 47 units after the first.
  Bytes payload = test::pattern(400);
  EXPECT_EQ(fragment(test::v4({.fragment = 0x1fff - 47}, payload), 400).result,
            FragmentResult::kDone);
  EXPECT_EQ(fragment(test::v4({.fragment = 0x1fff - 46}, payload), 400).result,
            FragmentResult::kRefused);
}

TEST(FragmentTest, ShortOfBuffersNothingIsSent) {
  Bytes packet = test::v4({}, test::pattern(1400));
  Cut cut = fragment(packet, 1000, 1);
  EXPECT_EQ(cut.result, FragmentResult::kNoBuffer);
  EXPECT_TRUE(cut.fragments.empty());
  EXPECT_EQ(fragment(packet, 1000, 2).result, FragmentResult::kDone);

  PacketPool smallBlocks(500, 10);
  EXPECT_EQ(fragmentIpv4(smallBlocks, packet, 1000, [](Packet) {}), FragmentResult::kNoBuffer);
}

TEST(FragmentTest, LargestPacketAtTheSmallestMtu) {
  Cut cut = fragment(test::v4({}, test::pattern(65515)), kMinimumV4Mtu);
  EXPECT_EQ(cut.fragments.size(), 1365u);
}

TEST(FragmentTest, WrongChecksumStaysWrong) {
  Bytes packet = test::v4({}, test::pattern(1400));
  packet[10] ^= 1;
  for (const Bytes& f : fragment(packet, 1000).fragments) EXPECT_FALSE(test::v4ChecksumValid(f));
}

}  // namespace
}  // namespace braid::fragment_test
