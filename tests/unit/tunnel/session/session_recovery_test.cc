// Recovery frames of an authenticated peer, honest or hostile: what a session restores, reports and
// counts.

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/unit/tunnel/session/raw_peer_test.h"
#include "tunnel/wire/frame_payloads.h"

namespace braid::session_recovery_test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes data(FlowNumber flow, uint32_t dsn, size_t size) {
  Bytes frame(kDataFrameHeader);
  writeDataHeader(flow, Dsn(dsn), size, frame.data());
  return frame + Bytes(size, static_cast<uint8_t>(dsn + 1));
}

/// Parity 0 of the symbols: their XOR.
Bytes sum(const std::vector<Bytes>& symbols) {
  Bytes all;
  for (const Bytes& s : symbols) {
    all.resize(std::max(all.size(), s.size()));
    for (size_t i = 0; i < s.size(); ++i) all[i] ^= s[i];
  }
  return all;
}

BlockDescription blockOf(uint16_t id, std::initializer_list<SymbolRange> ranges, size_t symbolSize,
                         uint8_t parities = 1) {
  BlockDescription block;
  block.block = id;
  block.parities = parities;
  block.symbolSize = static_cast<uint16_t>(symbolSize);
  for (const SymbolRange& r : ranges) block.ranges[block.rangeCount++] = r;
  return block;
}

Bytes parity(const BlockDescription& block, const Bytes& part, size_t index = 0) {
  Bytes frame(parityHeaderSize(block));
  Writer writer(frame);
  writeParityHeader(writer, block, index, part.size());
  return frame + part;
}

Bytes tail(BlockId block, size_t offset, const Bytes& part) {
  Bytes frame(kParityTailHeader);
  Writer writer(frame);
  writeParityTailHeader(writer, {block, 0, static_cast<uint16_t>(offset), part});
  return frame + part;
}

struct SessionRecoveryTest : test::RawPeerTest {
  std::vector<RecoveredFrame> told;
  size_t acks = 0;

  void SetUp() override { start(); }
  void onFrame(const WireFrame& frame) override {
    if (const auto* recovered = std::get_if<RecoveredFrame>(&frame)) told.push_back(*recovered);
    acks += std::holds_alternative<AckFrame>(frame);
  }
  std::optional<Drop> receive(uint8_t subflow, uint64_t pn, const Bytes& frames) {
    return say(frames, home, PacketNumber(pn), SubflowId(subflow));
  }
  /// The hub has validated the address of subflow 0, so it sends there.
  void prove() {
    RawPeerTest::prove();
    told.clear();
    acks = 0;
  }
  const Bytes a = data(0_flow, 0, 50), b = data(0_flow, 1, 80), c = data(0x8003_flow, 0, 30);
};

TEST_F(SessionRecoveryTest, AParityGivesBackWhatIsMissingAndTheSenderIsTold) {
  prove();
  receive(0, 2, a);
  EXPECT_EQ(receive(0, 9, parity(blockOf(1, {{0, 2, 2}}, b.size()), sum({a, b}))), std::nullopt);
  ASSERT_EQ(packets.delivered(), 2u);
  EXPECT_EQ(packets.bytes(PacketEvent::Kind::kDelivered)[1], Bytes(80, 2));
  listen();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].subflow, 0_subflow);
  EXPECT_EQ(told[0].first, 3_pn);
  EXPECT_EQ(told[0].count, 1u);
  EXPECT_EQ(status().restored, 1u);
  EXPECT_EQ(status().paritiesReceived, 1u);
  receive(0, 3, b);
  EXPECT_EQ(packets.delivered(), 2u) << "a late original comes once";
  EXPECT_EQ(hub->drops()[static_cast<size_t>(Drop::kDuplicate)], 1u);
}

TEST_F(SessionRecoveryTest, TheParityMayComeFirst) {
  prove();
  receive(0, 9, parity(blockOf(1, {{0, 2, 2}}, b.size()), sum({a, b})));
  EXPECT_EQ(packets.delivered(), 0u);
  receive(0, 3, b);
  EXPECT_EQ(packets.bytes(PacketEvent::Kind::kDelivered),
            (std::vector<Bytes>{Bytes(50, 1), Bytes(80, 2)}))
      << "in order";
}

TEST_F(SessionRecoveryTest, ADatagramIsRestoredWithAllItsPackets) {
  prove();
  Bytes two = a + c;
  receive(0, 3, b);
  receive(0, 9, parity(blockOf(1, {{0, 2, 2}}, two.size()), sum({two, b})));
  EXPECT_EQ(packets.delivered(), 3u);
  EXPECT_EQ(drops(Drop::kBadParity), 0u);
}

TEST_F(SessionRecoveryTest, OtherFramesAreNoPartOfASymbol) {
  prove();
  receive(0, 2, Bytes{0x01} + a + Bytes{0x00, 0x01} + c + Bytes{0x01});
  receive(0, 9, parity(blockOf(1, {{0, 2, 2}}, (a + c).size()), sum({a + c, b})));
  EXPECT_EQ(packets.delivered(), 3u);
  EXPECT_EQ(drops(Drop::kBadParity), 0u);
}

TEST_F(SessionRecoveryTest, NeighboursAreToldTogether) {
  prove();
  Bytes d = data(0_flow, 2, 20);
  receive(0, 9, parity(blockOf(1, {{0, 2, 1}}, a.size()), a));
  receive(0, 10, parity(blockOf(2, {{0, 3, 1}}, b.size()), b));
  receive(0, 11, parity(blockOf(3, {{0, 6, 1}}, d.size()), d));
  listen();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].first.value() + told[1].first.value(), 2u + 6u);
  EXPECT_EQ(told[0].count + told[1].count, 3u);
}

TEST_F(SessionRecoveryTest, AHeadAndATail) {
  prove();
  receive(0, 2, a);
  Bytes whole = sum({a, b});
  receive(0, 8,
          parity(blockOf(1, {{0, 2, 2}}, b.size()), Bytes(whole.begin(), whole.begin() + 30)));
  EXPECT_EQ(packets.delivered(), 1u);
  receive(0, 9, tail(1_block, 30, Bytes(whole.begin() + 30, whole.end())));
  EXPECT_EQ(packets.delivered(), 2u);
}

TEST_F(SessionRecoveryTest, ParitiesAndTailsAskForAnAckAndRecoveredDoesNot) {
  prove();
  Bytes recovered(8);
  Writer writer(recovered);
  writeFrame(writer, RecoveredFrame{0_subflow, 5_pn, 1});
  recovered.resize(writer.size());
  receive(0, 2, recovered);
  now += 10ms;
  listen();
  EXPECT_EQ(acks, 0u);
  receive(0, 3, parity(blockOf(1, {{0, 90, 2}}, 4), Bytes(3)));
  now += 10ms;
  listen();
  EXPECT_EQ(acks, 1u);
  receive(0, 4, tail(1_block, 3, Bytes(1)));
  now += 10ms;
  listen();
  EXPECT_EQ(acks, 2u);
}

// ---- hostile

TEST_F(SessionRecoveryTest, AbsurdParitiesAreCounted) {
  RecordProperty("rule", "parity.capacity parity.twice parity.same tail.place tail.head");
  prove();
  uint64_t pn = 2;
  auto bad = [&](const Bytes& frame) {
    uint64_t before = drops(Drop::kBadParity);
    EXPECT_EQ(receive(0, pn++, frame), std::nullopt) << "well-formed all the same";
    return drops(Drop::kBadParity) - before;
  };
  Bytes part(40);
  EXPECT_EQ(bad(parity(blockOf(1, {{0, 90, 4}, {0, 92, 4}}, 40), part)), 1u) << "overlap";
  EXPECT_EQ(bad(parity(blockOf(2, {{0, 90, 2}}, 2049), part)), 1u) << "larger than any datagram";
  EXPECT_EQ(bad(parity(blockOf(3, {{0, 90, 2}}, 40), part)), 0u);
  EXPECT_EQ(bad(parity(blockOf(3, {{0, 91, 2}}, 40), part)), 1u) << "another block of that number";
  EXPECT_EQ(bad(parity(blockOf(3, {{0, 90, 2}}, 41), part)), 1u) << "another size";
  EXPECT_EQ(bad(parity(blockOf(3, {{0, 90, 2}}, 40, 2), part)), 1u) << "another M";
  EXPECT_EQ(bad(parity(blockOf(4, {{0, 90, 2}}, 40), Bytes(10))), 0u);
  EXPECT_EQ(bad(tail(4_block, 11, Bytes(29))), 1u) << "a hole before the tail";
  EXPECT_EQ(bad(tail(4_block, 10, Bytes(29))), 1u) << "a hole behind it";
  EXPECT_EQ(bad(tail(99_block, 10, Bytes(29))), 0u) << "without a head it is late, not bad";
  EXPECT_EQ(receive(0, pn++, Bytes{0x09, 0, 1, 0, 0}), Drop::kBadFrame);
}

TEST_F(SessionRecoveryTest, WhatIsRestoredIsDataOrBad) {
  prove();
  Bytes garbage(40, 0xff);
  receive(0, 9, parity(blockOf(1, {{0, 2, 1}}, garbage.size()), garbage));
  EXPECT_EQ(drops(Drop::kBadParity), 1u);
  Bytes close = Bytes{kFrame<CloseFrame>.number, 0} + a;
  receive(0, 10, parity(blockOf(2, {{0, 3, 1}}, close.size()), close));
  EXPECT_EQ(drops(Drop::kBadParity), 2u);
  EXPECT_FALSE(hub->over()) << "only DATA takes effect";
  EXPECT_EQ(packets.delivered(), 0u);
}

TEST_F(SessionRecoveryTest, WhatThereWasNoBufferForIsNotToldAsRecovered) {
  prove();
  receive(0, 2, a);
  std::vector<Packet> hoard;
  while (pool.limit() - pool.inUse() > 1) hoard.push_back(pool.allocate());
  receive(0, 9,
          parity(blockOf(1, {{0, 2, 2}}, b.size()),
                 sum({a, b})));  // takes the last buffer while it is read
  hoard.clear();
  EXPECT_EQ(drops(Drop::kNoBuffer), 1u);
  EXPECT_EQ(packets.delivered(), 1u);
  listen();
  EXPECT_TRUE(told.empty()) << "the sender would not repair it";
}

TEST_F(SessionRecoveryTest, OnlySoManyParitiesOfADatagramAreActedOn) {
  RecordProperty("rule", "parity.many");
  prove();
  Bytes frames;
  for (uint16_t id = 0; id < 20; ++id)
    frames = frames + parity(blockOf(id, {{0, 90, 2}}, 5), Bytes(5));
  EXPECT_EQ(receive(0, 9, frames), std::nullopt);
  EXPECT_EQ(drops(Drop::kBadParity), 4u);
  EXPECT_EQ(status().paritiesReceived, 16u);
}

TEST_F(SessionRecoveryTest, AFloodOfBlocksKeepsNoBuffers) {
  prove();
  size_t before = pool.inUse();
  Random random(5);
  for (uint64_t pn = 2; pn < 3000; ++pn) {
    auto subflow = static_cast<uint8_t>(random.below(256));
    auto first = random.next() & 0xffffffff;
    auto count = static_cast<uint32_t>(1 + random.below(128));
    auto m = static_cast<uint8_t>(1 + random.below(16));
    BlockDescription block = blockOf(static_cast<uint16_t>(random.below(70)),
                                     {{subflow, first, count}}, 1 + random.below(1200), m);
    Bytes part(1 + random.below(block.symbolSize));
    for (uint8_t& x : part) x = static_cast<uint8_t>(random.next());
    receive(0, pn, parity(block, part, random.below(m)));
    listen();
  }
  EXPECT_LE(pool.inUse(), before + 100);
  EXPECT_GT(drops(Drop::kBadParity), 0u);
}

TEST_F(SessionRecoveryTest, NonsenseRecoveredChangesNothing) {
  RecordProperty("rule", "recovered.packet");
  prove();
  uint64_t pn = 2;
  for (RecoveredFrame frame :
       {RecoveredFrame{0_subflow, 0_pn, 128}, RecoveredFrame{9_subflow, 5_pn, 1},
        RecoveredFrame{0_subflow, PacketNumber((uint64_t{1} << 62) - 1), 128}}) {
    Bytes bytes(20);
    Writer writer(bytes);
    writeFrame(writer, frame);
    bytes.resize(writer.size());
    EXPECT_EQ(receive(0, pn++, bytes), std::nullopt);
  }
  EXPECT_EQ(status().subflows.at(0).decoded, 0u);
}

TEST_F(SessionRecoveryTest, WithoutABufferParitiesAreOnlyCounted) {
  options.decodeBuffer = 0;
  SetUp();
  prove();
  receive(0, 2, a);
  receive(0, 9, parity(blockOf(1, {{0, 2, 2}}, b.size()), sum({a, b})));
  receive(0, 10, tail(1_block, 3, Bytes(3)));
  EXPECT_EQ(packets.delivered(), 1u);
  EXPECT_EQ(status().paritiesReceived, 1u);
  EXPECT_EQ(status().restored, 0u);
}

TEST_F(SessionRecoveryTest, ABufferOfOnePacketStillDecodesWhatItHolds) {
  options.decodeBuffer = 1;
  SetUp();
  prove();
  receive(0, 2, a);
  receive(0, 9, parity(blockOf(1, {{0, 2, 2}}, b.size()), sum({a, b})));
  EXPECT_EQ(packets.delivered(), 2u);
  receive(0, 12, data(0_flow, 2, 10));
  receive(0, 13, data(0_flow, 3, 10));
  receive(0, 15, parity(blockOf(2, {{0, 12, 3}}, 20), Bytes(20)));
  EXPECT_EQ(drops(Drop::kBadParity), 0u);
}

}  // namespace
}  // namespace braid::session_recovery_test
