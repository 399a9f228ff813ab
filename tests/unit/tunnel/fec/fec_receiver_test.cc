#include "tunnel/fec/fec_receiver.h"

#include "tests/unit/coding/coded_block.h"
#include "tests/unit/tunnel/fec/protection_bench.h"
#include "tunnel/wire/frame_payloads.h"

namespace braid::fec_receiver_test {
namespace {

constexpr size_t kCapacity = 1500;

/// Receives parts of a peer's blocks of subflow 0.
struct FecReceiverTest : ProtectionBench {
  Random dice{9};
  std::optional<FecReceiver> receiver;
  std::vector<uint8_t> wire;  // the last received frame

  void SetUp() override {
    ProtectionBench::SetUp();
    receiver.emplace(protectOptions, kCapacity, subflows, trace);
    open(0);
  }
  CodedBlock block(uint16_t id, uint64_t first, uint32_t symbols, size_t parities = 1) {
    return makeBlock(dice, id, {{0, first, symbols}}, parities, 200);
  }
  void onSymbol(const CodedBlock& b, size_t column) {
    ByteView piece(b.symbols[column]);
    receiver->onSymbol(0_subflow, PacketNumber(b.place(column).first), {&piece, 1}, now);
  }
  /// The frame with the first `size` bytes of a parity.
  ParityFrame frame(const CodedBlock& b, size_t index = 0, size_t size = SIZE_MAX) {
    ByteView whole(b.parities[index]);
    ByteView part = whole.first(std::min(size, whole.size()));
    wire.resize(parityHeaderSize(b.description) + part.size());
    Writer writer(wire);
    writeParityHeader(writer, b.description, index, part.size());
    writer.bytes(part);
    return std::get<ParityFrame>(*FrameReader(wire).next());
  }
  bool onParity(const CodedBlock& b, size_t index = 0, size_t size = SIZE_MAX) {
    return receiver->onParity(frame(b, index, size), 0_subflow, 50_pn, now);
  }
  /// Expects that exactly this column of the block, or nothing, is restored.
  void expectBack(const CodedBlock& b, std::optional<size_t> column) {
    BlockDecoder::Restored restored;
    if (column) {
      ASSERT_TRUE(receiver->poll(restored));
      EXPECT_EQ(restored.subflow, 0);
      EXPECT_EQ(restored.pn, b.place(*column).first);
      EXPECT_EQ(Bytes(restored.symbol.begin(), restored.symbol.end()), b.padded(*column));
    }
    EXPECT_FALSE(receiver->poll(restored));
  }
  void taken(uint8_t subflow, uint64_t pn, bool whole = true) {
    receiver->onTaken({.block = 1, .subflow = subflow, .pn = pn, .symbol = {}}, whole, now);
  }
  /// The frames for the sender in one datagram.
  std::vector<RecoveredFrame> told() {
    DatagramBuilder build(subflows.at(0_subflow), pool.allocate());
    receiver->write(build);
    if (build.used() == 0) return {};
    EXPECT_TRUE(build.finish(*sealer, out, now));
    return only<RecoveredFrame>(read(out));
  }
};

// ---- what decoding gives back

TEST_F(FecReceiverTest, AsManySymbolsComeBackAsThereAreParities) {
  CodedBlock b = block(1, 10, 4, 2);
  onSymbol(b, 1);
  onSymbol(b, 3);
  EXPECT_TRUE(onParity(b, 1));
  expectBack(b, std::nullopt);
  EXPECT_TRUE(onParity(b, 0));
  BlockDecoder::Restored restored;
  for (size_t column : {0u, 2u}) {
    ASSERT_TRUE(receiver->poll(restored));
    EXPECT_EQ(restored.pn, 10 + column);
    EXPECT_EQ(Bytes(restored.symbol.begin(), restored.symbol.end()), b.padded(column));
  }
  EXPECT_FALSE(receiver->poll(restored));
  EXPECT_EQ(receiver->parities(), 2u);
  EXPECT_EQ(receiver->counts().blocksDecoded, 1u);
  EXPECT_EQ(receiver->counts().restored, 2u);
}

TEST_F(FecReceiverTest, TheParityMayComeBeforeTheLastSymbol) {
  CodedBlock b = block(1, 10, 2);
  EXPECT_TRUE(onParity(b));
  expectBack(b, std::nullopt);
  onSymbol(b, 0);
  expectBack(b, 1);
}

TEST_F(FecReceiverTest, AParityIsWholeWithItsTail) {
  CodedBlock b = block(1, 10, 2);
  onSymbol(b, 0);
  ByteView whole(b.parities[0]);
  EXPECT_TRUE(onParity(b, 0, whole.size() - 1));
  expectBack(b, std::nullopt);
  auto offset = static_cast<uint16_t>(whole.size() - 1);
  EXPECT_FALSE(receiver->onTail({1_block, 0, 0, whole.last(1)})) << "not where its head ends";
  EXPECT_TRUE(receiver->onTail({1_block, 0, offset, whole.last(1)}));
  expectBack(b, 1);
  EXPECT_TRUE(receiver->onTail({7_block, 0, offset, whole.last(1)}))
      << "without a head it is late, not bad";
}

TEST_F(FecReceiverTest, ThePacketNumbersAreThoseThatTheSubflowExpects) {
  constexpr uint64_t kFirst = (uint64_t{1} << 32) + 7;
  Subflow& s = subflows.at(0_subflow);
  s.onPacket(PacketNumber(kFirst), true, Ecn::kNotEct, 100, s.route(), now);
  CodedBlock b = block(1, kFirst, 2);
  onSymbol(b, 0);
  EXPECT_TRUE(onParity(b)) << "says the low 32 bits only";
  expectBack(b, 1);
}

TEST_F(FecReceiverTest, WhatContradictsItsBlockIsRefused) {
  CodedBlock b = block(1, 10, 2);
  ParityFrame absurd = frame(b);
  absurd.index = absurd.parities;
  EXPECT_FALSE(receiver->onParity(absurd, 0_subflow, 50_pn, now));
  absurd = frame(b);
  absurd.symbolSize = kCapacity + 1;
  EXPECT_FALSE(receiver->onParity(absurd, 0_subflow, 50_pn, now));
  EXPECT_TRUE(onParity(b));
  absurd = frame(b);
  ++absurd.symbolSize;
  EXPECT_FALSE(receiver->onParity(absurd, 0_subflow, 50_pn, now));
  EXPECT_EQ(receiver->parities(), 4u) << "all that came";
}

TEST_F(FecReceiverTest, WithoutABufferParitiesAreOnlyCounted) {
  protectOptions.decodeBuffer = 0;
  CodedBlock b = block(1, 10, 2);
  onSymbol(b, 0);
  EXPECT_TRUE(onParity(b));
  EXPECT_TRUE(receiver->onTail({1_block, kMaxBlockParities, 0, b.parities[0]}))
      << "nobody looks at it";
  expectBack(b, std::nullopt);
  EXPECT_EQ(receiver->parities(), 1u);
}

// ---- eviction

TEST_F(FecReceiverTest, SymbolsAreForgottenWhenTheBufferIsFull) {
  protectOptions.decodeBuffer = 4;
  CodedBlock b = block(1, 10, 2);
  CodedBlock later = block(2, 12, 3);
  for (bool full : {false, true}) {
    receiver.emplace(protectOptions, kCapacity, subflows, trace);
    onSymbol(b, 0);
    onSymbol(later, 0);
    onSymbol(later, 1);
    if (full) onSymbol(later, 2);  // replaces packet 10
    EXPECT_TRUE(onParity(b));
    expectBack(b, full ? std::nullopt : std::optional<size_t>(1));
  }
}

TEST_F(FecReceiverTest, TheOldestBlockGivesWay) {
  const size_t most = DecoderOptions{}.blocks;
  std::vector<CodedBlock> blocks;
  for (uint16_t id = 0; id <= most; ++id) {
    blocks.push_back(block(id, uint64_t{2} * id, 2));
    EXPECT_EQ(receiver->counts().evicted, 0u);
    EXPECT_TRUE(onParity(blocks.back()));
  }
  EXPECT_EQ(receiver->counts().evicted, 1u);
  onSymbol(blocks[0], 0);
  expectBack(blocks[0], std::nullopt);
  onSymbol(blocks[1], 0);
  expectBack(blocks[1], 1);
}

// ---- memory

constexpr size_t kFullRing = 1024 * kCapacity;

struct FecReceiverMemoryTest : FecReceiverTest {
  MemoryQuota memory{8 << 20};
  std::optional<MemoryQuota> none;  ///< another one, with next to nothing

  void SetUp() override {
    FecReceiverTest::SetUp();
    receiver.emplace(protectOptions, kCapacity, subflows, trace, &memory);
  }
  void TearDown() override { receiver.reset(); }  // before its budget
  /// Receives data of one subflow, without parities.
  static void data(FecReceiver& to, uint8_t subflow, uint64_t first, uint64_t end) {
    std::vector<uint8_t> bytes(100, 7);
    ByteView piece(bytes);
    for (; first < end; ++first)
      to.onSymbol(SubflowId(subflow), PacketNumber(first), {&piece, 1}, Time{});
  }
};

// Found by review: a subflow used 2 MB from its first data on; a thousand peers used 4.3 GB.
TEST_F(FecReceiverMemoryTest, WithoutParitiesOnlyTheLastSymbolsAreKept) {
  EXPECT_EQ(receiver->footprint(), 0u);
  data(*receiver, 0, 0, 5000);
  EXPECT_GT(receiver->footprint(), FecReceiver::kUncoded * kCapacity);
  EXPECT_LT(receiver->footprint(), 2 * FecReceiver::kUncoded * kCapacity);
  EXPECT_EQ(memory.used(), receiver->footprint());
}

TEST_F(FecReceiverMemoryTest, OfASlowFlowOnlyTheRoundTripsSymbolsAreKept) {
  const size_t least = SymbolRing::footprint(kCapacity, BlockDecoder::kFirstPlaces);
  Bytes bytes(100, 7);
  ByteView piece(bytes);
  for (uint64_t pn = 0; pn < 1000; ++pn, now += 100ms)
    receiver->onSymbol(0_subflow, PacketNumber(pn), {&piece, 1}, now);
  EXPECT_EQ(receiver->footprint(), least);
  for (uint64_t pn = 1000; pn < 2000; ++pn, now += 100us)
    receiver->onSymbol(0_subflow, PacketNumber(pn), {&piece, 1}, now);
  EXPECT_EQ(receiver->footprint(), SymbolRing::footprint(kCapacity, FecReceiver::kUncoded));
}

// A parity may wait for new data, and the round trip known here may be outdated.
TEST_F(FecReceiverMemoryTest, AParityHalfASecondLateFindsItsSymbol) {
  Bytes bytes(100, 7);
  ByteView piece(bytes);
  uint64_t pn = 0;
  const auto come = [&](Time until) {
    for (; now < until; now += 10ms)
      receiver->onSymbol(0_subflow, PacketNumber(pn++), {&piece, 1}, now);
  };
  come(now + 2s);
  CodedBlock b = block(1, pn, 2);
  onSymbol(b, 0);
  pn += 2;
  come(now + 490ms);
  EXPECT_TRUE(onParity(b));
  expectBack(b, 1);
}

TEST_F(FecReceiverMemoryTest, TheFirstParityFindsThem) {
  data(*receiver, 0, 0, 200);
  CodedBlock b = block(1, 200, 100);
  for (size_t column = 0; column < 99; ++column) onSymbol(b, column);
  EXPECT_TRUE(onParity(b));
  expectBack(b, 99);
}

// Found by measuring 1,000 peers: blocks and parities used 248 KB for each peer, although only one
// block is open at a time.
TEST_F(FecReceiverMemoryTest, BlocksAndParitiesTakeWhatIsOpen) {
  EXPECT_TRUE(onParity(block(1, 10, 2)));
  size_t one = receiver->footprint();
  EXPECT_GT(one, kCapacity);
  EXPECT_LT(one, 12 * kCapacity) << "a block, and parities of a few";
  for (uint16_t id = 2; id < 200; ++id) EXPECT_TRUE(onParity(block(id, id * 10, 2)));
  size_t most = receiver->footprint();
  EXPECT_GT(most, DecoderOptions{}.blocks * kCapacity) << "a parity of each open block";
  EXPECT_LT(most, 192 * kCapacity) << "33 blocks of 4 KB and 64 parities";
  for (uint16_t id = 200; id < 300; ++id) EXPECT_TRUE(onParity(block(id, id * 10, 2)));
  EXPECT_EQ(receiver->footprint(), most);
  EXPECT_EQ(memory.used(), most);
  receiver->onTimer(now);
  receiver->onTimer(now + FecReceiver::kIdle);
  receiver->onTimer(now + 2 * FecReceiver::kIdle);
  EXPECT_EQ(memory.used(), 0u);
}

TEST_F(FecReceiverMemoryTest, TheSubflowOfAParityKeepsManyFromThenOn) {
  data(*receiver, 0, 0, 200);
  data(*receiver, 1, 0, 200);
  EXPECT_TRUE(onParity(block(1, 210, 2)));
  data(*receiver, 0, 220, 1000);
  data(*receiver, 1, 220, 1000);
  EXPECT_GT(receiver->footprint(), kFullRing);
  EXPECT_LT(receiver->footprint(), 3 * kFullRing / 2) << "and no other";
  CodedBlock far = block(2, 1000, 2);
  onSymbol(far, 0);
  data(*receiver, 0, 1002, 1900);
  EXPECT_TRUE(onParity(far));
  expectBack(far, 1);
}

TEST_F(FecReceiverMemoryTest, WhatIsNotUsedIsGivenBack) {
  data(*receiver, 0, 0, 200);
  EXPECT_TRUE(onParity(block(1, 210, 2)));
  data(*receiver, 0, 220, 1300);
  receiver->onTimer(now);
  receiver->onTimer(now + FecReceiver::kIdle - 1ns);
  EXPECT_GT(receiver->footprint(), kFullRing);
  receiver->onTimer(now + FecReceiver::kIdle);
  EXPECT_EQ(receiver->footprint(), 0u);
  EXPECT_EQ(memory.used(), 0u);
  CodedBlock b = block(5, 400, 2);
  onSymbol(b, 0);
  EXPECT_TRUE(onParity(b));
  expectBack(b, 1);
}

TEST_F(FecReceiverMemoryTest, ASenderThatStopsToCodeIsNoticed) {
  EXPECT_TRUE(onParity(block(1, 0, 2)));
  uint64_t pn = 10;
  for (int look = 0; look < 20; ++look) {
    data(*receiver, 0, pn, pn + 1100);
    pn += 1100;
    receiver->onTimer(now + look * FecReceiver::kIdle);
    EXPECT_EQ(receiver->footprint() > kFullRing, look < 6) << look;
  }
  CodedBlock b = block(2, pn, 2);
  onSymbol(b, 0);
  EXPECT_TRUE(onParity(b));
  expectBack(b, 1);
}

TEST_F(FecReceiverMemoryTest, WhoTakesMostGivesToThoseWhoHaveLittle) {
  FecReceiver greedy(protectOptions, kCapacity, subflows, trace);
  for (int subflow = 0; subflow < 256; ++subflow)
    data(greedy, static_cast<uint8_t>(subflow), 0, 100);
  EXPECT_LE(memory.used(), memory.limit());
  EXPECT_GT(greedy.footprint(), memory.limit() / 2);
  CodedBlock b = block(1, 10, 100);
  for (size_t column = 0; column < 99; ++column) onSymbol(b, column);
  EXPECT_TRUE(onParity(b));
  expectBack(b, 99);
  data(*receiver, 0, 200, 1300);
  EXPECT_GT(receiver->footprint(), kFullRing);
  EXPECT_LE(memory.used(), memory.limit());
}

TEST_F(FecReceiverMemoryTest, WithoutMemoryNothingIsKeptAndNothingBreaks) {
  none.emplace(1000);
  receiver.emplace(protectOptions, kCapacity, subflows, trace, &*none);
  CodedBlock b = block(1, 10, 2);
  onSymbol(b, 0);
  EXPECT_TRUE(onParity(b)) << "useless, not bad";
  expectBack(b, std::nullopt);
  EXPECT_EQ(receiver->footprint(), 0u);
}

// ---- what the sender is told

TEST_F(FecReceiverTest, WhatWasTakenWholeIsToldOnce) {
  taken(0, 10, false);
  EXPECT_FALSE(receiver->hasWord()) << "the sender must repair it";
  taken(0, 12);
  EXPECT_TRUE(receiver->hasWord());
  auto frames = told();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].subflow, 0_subflow);
  EXPECT_EQ(frames[0].first, 12_pn);
  EXPECT_EQ(frames[0].count, 1u);
  EXPECT_FALSE(receiver->hasWord());
  EXPECT_TRUE(told().empty());
}

TEST_F(FecReceiverTest, NeighboursAreToldTogetherUpToABlock) {
  for (uint64_t pn = 10; pn <= 10 + kMaxBlockSymbols; ++pn) taken(0, pn);
  taken(1, 11 + kMaxBlockSymbols);
  auto frames = told();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].subflow, 1_subflow) << "the newest first";
  EXPECT_EQ(frames[1].first, 10_pn + kMaxBlockSymbols);
  EXPECT_EQ(frames[1].count, 1u);
  EXPECT_EQ(frames[2].first, 10_pn);
  EXPECT_EQ(frames[2].count, kMaxBlockSymbols);
}

TEST_F(FecReceiverTest, ADatagramTellsNoMoreThanTheSenderActsOn) {
  for (uint64_t pn = 0; pn < 1000; pn += 2) taken(0, pn);
  size_t all = 0;
  while (receiver->hasWord()) {
    size_t some = told().size();
    ASSERT_GT(some, 0u);
    EXPECT_LE(some, kMaxCostlyFrames);
    all += some;
  }
  EXPECT_EQ(all, 64u) << "the peer repairs the rest";
}

TEST_F(FecReceiverTest, ParitiesAndWhatTheyGiveBackAreTraced) {
  CodedBlock b = block(5, 10, 2, 3);
  receiver->onParity(frame(b, 2), 4_subflow, 77_pn, now);
  ASSERT_EQ(traced.size(), 1u);
  EXPECT_EQ(traced[0].kind, TraceEvent::Kind::kParityReceived);
  EXPECT_EQ(traced[0].block, 5_block);
  EXPECT_EQ(traced[0].index, 2);
  EXPECT_EQ(traced[0].k, 2);
  EXPECT_EQ(traced[0].m, 3);
  EXPECT_EQ(traced[0].on, 4_subflow);
  EXPECT_EQ(traced[0].onPn, 77_pn);
  taken(0, 11);
  ASSERT_EQ(traced.size(), 2u);
  EXPECT_EQ(traced[1].kind, TraceEvent::Kind::kBlockDecoded);
  EXPECT_EQ(traced[1].pn, 11_pn);
}

}  // namespace
}  // namespace braid::fec_receiver_test
