#include "tunnel/fec/fec_sender.h"

#include "tests/unit/tunnel/fec/protection_bench.h"
#include "tunnel/fec/fec_receiver.h"
#include "tunnel/wire/frame_payloads.h"

namespace braid::fec_sender_test {
namespace {

struct FecSenderTest : ProtectionBench {
  std::vector<ProtectionCursors> marks;
  std::optional<FecSender> blocks;

  void SetUp() override {
    ProtectionBench::SetUp();
    blocks.emplace(*context, marks);
  }
  Subflow& openMarked(uint8_t id) {
    marks.emplace_back();
    return open(id);
  }
  bool start(size_t parities, size_t symbols = 128, size_t of = Protection::kAllPaths) {
    Protection choice{.kind = Protection::Kind::kNewBlock, .of = of, .on = 0, .symbols = symbols};
    choice.parities = parities;
    return blocks->start(0, nullptr, choice, {}, now);
  }
  size_t left() { return blocks->paritiesLeft(0, nullptr, now); }
  bool sendParity(Subflow& on) { return blocks->sendParity(0, nullptr, on, out, now); }
};

TEST_F(FecSenderTest, AParityGivesALostPacketBack) {
  Subflow& s = openMarked(0);
  PacketNumber first = send(s, {make(50)});
  PacketNumber lost = send(s, {make(80), make(70)});
  ASSERT_TRUE(start(1));
  EXPECT_EQ(left(), 1u);
  ASSERT_TRUE(sendParity(s));
  EXPECT_EQ(left(), 0u);
  auto parities = only<ParityFrame>(read(out));
  ASSERT_EQ(parities.size(), 1u);
  BlockDescription block = describe(parities[0], [&](SubflowId) { return lost + 1; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{0, first.value(), 2}));
  EXPECT_EQ(block.symbolSize, 2 * kDataFrameHeader + 150);

  FecReceiver receiver(protectOptions, 2048, subflows, trace);
  std::vector<uint8_t> symbol(kDataFrameHeader + 50);
  const DataUnit& d = *s.sender().sent().at(first).data[0];
  writeDataHeader(d.slot, d.dsn, 50, symbol.data());
  std::copy_n(d.packet.data(), 50, symbol.begin() + kDataFrameHeader);
  std::array<ByteView, 1> pieces{symbol};
  receiver.onSymbol(0_subflow, first, pieces, Time{});
  ASSERT_TRUE(receiver.onParity(parities[0], 0_subflow, lost + 1, now));
  BlockDecoder::Restored restored;
  ASSERT_TRUE(receiver.poll(restored));
  EXPECT_EQ(restored.pn, lost.value());
  FrameReader reader(restored.symbol);
  EXPECT_EQ(std::get<DataFrame>(*reader.next()).payload.size(), 80u);
  EXPECT_EQ(std::get<DataFrame>(*reader.next()).payload.size(), 70u);
  receiver.onTaken(restored, true, now);
  EXPECT_TRUE(receiver.hasWord());
}

TEST_F(FecSenderTest, WithoutPacketsThereIsNoBlock) {
  openMarked(0);
  EXPECT_FALSE(start(2));
  EXPECT_EQ(left(), 0u);
  EXPECT_EQ(blocks->begun(), 0u);
}

TEST_F(FecSenderTest, APacketIsInOneBlockOnly) {
  Subflow& s = openMarked(0);
  send(s, {make()});
  send(s, {make()});
  ASSERT_TRUE(start(1, 1));
  ASSERT_TRUE(start(1));
  EXPECT_EQ(traced.back().k, 1) << "the second one";
  EXPECT_FALSE(start(1));
  EXPECT_EQ(s.status(now).protectedPackets, 2u);
}

TEST_F(FecSenderTest, ABlockEndsWhenItsPacketsHaveArrived) {
  Subflow& s = openMarked(0);
  PacketNumber pn = send(s, {make()});
  send(s, {make()});
  ASSERT_TRUE(start(3));
  ASSERT_TRUE(sendParity(s));
  EXPECT_EQ(left(), 2u);
  now += kRtt;
  ack(s, pn, pn + 1);
  EXPECT_EQ(left(), 0u);
}

TEST_F(FecSenderTest, ABlockEndsWhenItIsTooLate) {
  Subflow& s = openMarked(0);
  send(s, {make()});
  ASSERT_TRUE(start(3));
  now += DataTracker::kTimely;
  EXPECT_EQ(left(), 3u);
  now += 1ms;
  EXPECT_EQ(left(), 0u);
}

TEST_F(FecSenderTest, ARepairWaitsForTheAnswerToTheParity) {
  Subflow& s = openMarked(0);
  UnitRef d = make();
  send(s, {d});
  ASSERT_TRUE(start(1));
  EXPECT_EQ(d->answerDue, now + s.path().rtt().smoothed() * 9 / 8);
}

TEST_F(FecSenderTest, WhatDoesNotFitBesideTheHeaderFollowsAtOnce) {
  Subflow& s = openMarked(0);
  send(s, {make(s.mtu().current() - kDatagramOverhead)});
  send(s, {make()});
  ASSERT_TRUE(start(2));
  EXPECT_FALSE(blocks->pollTail(out, now));
  ASSERT_TRUE(sendParity(s));
  EXPECT_EQ(out.bytes.size(), s.mtu().current());
  auto heads = only<ParityFrame>(read(out));
  ASSERT_EQ(heads.size(), 1u);
  size_t head = heads[0].part.size();
  EXPECT_FALSE(sendParity(s)) << "one tail at a time";
  ASSERT_TRUE(blocks->pollTail(out, now));
  auto tails = only<ParityTailFrame>(read(out));
  ASSERT_EQ(tails.size(), 1u);
  EXPECT_EQ(tails[0].offset, head);
  EXPECT_EQ(head + tails[0].part.size(), s.mtu().current() - kDatagramOverhead + kDataFrameHeader);
  EXPECT_FALSE(blocks->pollTail(out, now));
}

TEST_F(FecSenderTest, ATailWithoutItsPathIsDropped) {
  Subflow& s = openMarked(0);
  send(s, {make(s.mtu().current() - kDatagramOverhead)});
  ASSERT_TRUE(start(1));
  ASSERT_TRUE(sendParity(s));
  s.close(now);
  EXPECT_FALSE(blocks->pollTail(out, now));
}

TEST_F(FecSenderTest, OnlyTheChosenPathIsProtected) {
  Subflow& a = openMarked(0);
  Subflow& b = openMarked(1);
  send(a, {make()});
  PacketNumber pn = send(b, {make()});
  ASSERT_TRUE(start(1, 128, 1));
  ASSERT_TRUE(sendParity(a));
  auto parities = only<ParityFrame>(read(out));
  BlockDescription block = describe(parities.at(0), [&](SubflowId) { return pn + 1; });
  ASSERT_EQ(block.rangeCount, 1u);
  EXPECT_EQ(block.ranges[0], (SymbolRange{1, pn.value(), 1}));
}

TEST_F(FecSenderTest, ABlockOfAllPathsIsOfThePathThatSentMostOfIt) {
  for (uint8_t most : {1, 0}) {
    SetUp();
    marks.clear();
    subflows.clear();
    Subflow& a = openMarked(0);
    Subflow& b = openMarked(1);
    for (int i = 0; i < 3; ++i) send(most == 0 ? a : b, {make()});
    send(most == 0 ? b : a, {make()});
    ASSERT_TRUE(start(1));
    EXPECT_EQ(traced.back().k, 4);
    EXPECT_EQ(blocks->protectedPath(0, nullptr), most);
  }
}

}  // namespace
}  // namespace braid::fec_sender_test
