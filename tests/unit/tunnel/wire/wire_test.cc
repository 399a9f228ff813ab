#include "tunnel/wire/wire.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace braid {
namespace {

using Bytes = std::vector<uint8_t>;

template <typename F>
Bytes encode(const F& frame) {
  Bytes out(2048);
  Writer writer(out);
  writeFrame(writer, frame);
  EXPECT_TRUE(writer.ok());
  out.resize(writer.size());
  return out;
}

template <typename F>
F decodeOne(const Bytes& bytes) {
  FrameReader reader(bytes);
  std::optional<WireFrame> frame = reader.next();
  EXPECT_TRUE(frame && std::holds_alternative<F>(*frame));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.ok());
  return std::get<F>(*frame);
}

bool malformed(const Bytes& bytes) {
  FrameReader reader(bytes);
  while (reader.next()) {
  }
  return !reader.ok();
}

AckFrame randomAck(Random& random) {
  AckFrame ack;
  ack.subflow = static_cast<uint8_t>(random.below(256));
  ack.delay = std::chrono::microseconds(random.below(5000));
  ack.ecn = {random.below(1 << 20), random.below(100), random.below(70000)};
  ack.count = 1 + random.below(kMaxAckRanges);
  uint64_t last = (uint64_t{1} << 30) + random.below(uint64_t{1} << 40);
  for (size_t i = 0; i < ack.count; ++i) {
    uint64_t first = last - random.below(random.chance(0.1) ? 5000 : 4);
    ack.ranges[i] = {first, last};
    last = first - 2 - random.below(random.chance(0.1) ? 5000 : 4);
  }
  return ack;
}

TEST(Header, RoundTripsEveryField) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    DatagramHeader h{static_cast<uint8_t>(random.below(4)), static_cast<uint8_t>(random.below(4)),
                     static_cast<uint32_t>(random.next()), static_cast<uint8_t>(random.next()),
                     static_cast<uint32_t>(random.next())};
    Bytes bytes(kMinDatagram);
    writeHeader(h, bytes.data());
    EXPECT_TRUE(isSessionDatagram(bytes));
    auto read = readHeader(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->version, h.version);
    EXPECT_EQ(read->epoch, h.epoch);
    EXPECT_EQ(read->session, h.session);
    EXPECT_EQ(read->subflow, h.subflow);
    EXPECT_EQ(read->packetNumber, h.packetNumber);
  }
}

TEST(Header, RefusesShortReservedAndForeign) {
  Bytes bytes(kMinDatagram);
  writeHeader({}, bytes.data());
  ASSERT_TRUE(readHeader(bytes));
  EXPECT_FALSE(readHeader(ByteView(bytes).first(kMinDatagram - 1)));
  for (uint8_t first :
       {uint8_t{0x41}, uint8_t{0x42}, uint8_t{0x80}, uint8_t{0x16}, uint8_t{0x00}, uint8_t{0xc0}}) {
    bytes[0] = first;
    EXPECT_FALSE(readHeader(bytes)) << int{first};
  }
}

// RFC 9000 appendix A.3, with 32 bits.
TEST(PacketNumber, ExpandsToTheNearest) {
  EXPECT_EQ(expandPacketNumber(0, 0), 0u);
  EXPECT_EQ(expandPacketNumber(5, 0), 5u);
  EXPECT_EQ(expandPacketNumber(0, 0xffffffffu), 0x100000000u);
  EXPECT_EQ(expandPacketNumber(0xffffffffu, 0x100000000u), 0xffffffffu);
  EXPECT_EQ(expandPacketNumber(0xffffffffu, 0), 0xffffffffu);  // nothing is below zero
}

TEST(PacketNumber, ExpansionInvertsTruncationWithinHalfTheRange) {
  Random random(2);
  for (int i = 0; i < 100000; ++i) {
    uint64_t expected = random.below(uint64_t{1} << 60);
    uint64_t distance = random.below(uint64_t{1} << 31);
    uint64_t pn = random.chance(0.5) ? expected + distance : expected - std::min(expected, distance);
    ASSERT_EQ(expandPacketNumber(static_cast<uint32_t>(pn), expected), pn) << expected;
  }
}

TEST(Frames, AckRoundTrips) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    AckFrame ack = randomAck(random);
    AckFrame read = decodeOne<AckFrame>(encode(ack));
    ASSERT_EQ(read.count, ack.count) << "seed " << seed;
    for (size_t i = 0; i < ack.count; ++i) {
      ASSERT_EQ(read.ranges[i].first, ack.ranges[i].first) << "seed " << seed;
      ASSERT_EQ(read.ranges[i].last, ack.ranges[i].last) << "seed " << seed;
    }
    EXPECT_EQ(read.subflow, ack.subflow);
    EXPECT_EQ(read.delay, ack.delay);
    EXPECT_EQ(read.ecn.ect0, ack.ecn.ect0);
    EXPECT_EQ(read.ecn.ect1, ack.ecn.ect1);
    EXPECT_EQ(read.ecn.ce, ack.ecn.ce);
  }
}

TEST(Frames, AckThatDoesNotFitKeepsTheLargestRanges) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    AckFrame ack = randomAck(random);
    size_t whole = encode(ack).size();
    Bytes space(random.below(whole + 1));
    Writer writer(space);
    if (!writeFrame(writer, ack)) {
      EXPECT_EQ(writer.size(), 0u);
      EXPECT_LT(space.size(), 60u);
      continue;
    }
    space.resize(writer.size());
    AckFrame read = decodeOne<AckFrame>(space);
    ASSERT_LE(read.count, ack.count);
    for (size_t i = 0; i < read.count; ++i) ASSERT_EQ(read.ranges[i].last, ack.ranges[i].last);
  }
}

TEST(Frames, AckBelowZeroIsMalformed) {
  EXPECT_TRUE(malformed({0x02, 0, 3, 0, 1, 4, 0, 0, 0}));         // first range reaches below 0
  EXPECT_FALSE(malformed({0x02, 0, 3, 0, 1, 3, 0, 0, 0}));        // 0..3
  EXPECT_TRUE(malformed({0x02, 0, 3, 0, 2, 2, 0, 0, 0, 0, 0}));   // gap reaches below 0: smallest is 1
  EXPECT_FALSE(malformed({0x02, 0, 3, 0, 2, 1, 0, 0, 0, 0, 0}));  // 2..3 and 0
  EXPECT_TRUE(malformed({0x02, 0, 3, 0, 0, 0, 0, 0, 0}));         // no range
  EXPECT_TRUE(malformed({0x02, 0, 63, 0, 33, 0, 0, 0, 0}));       // more than kMaxAckRanges
}

TEST(Frames, EachTypeRoundTrips) {
  decodeOne<PingFrame>(encode(PingFrame{}));
  PathToken token{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(decodeOne<PathChallengeFrame>(encode(PathChallengeFrame{token})).token, token);
  EXPECT_EQ(decodeOne<PathResponseFrame>(encode(PathResponseFrame{token})).token, token);
  SkipFrame skip = decodeOne<SkipFrame>(encode(SkipFrame{7, 123456789, kMaxSkip}));
  EXPECT_EQ(skip.flow, 7);
  EXPECT_EQ(skip.first, 123456789u);
  EXPECT_EQ(skip.count, kMaxSkip);
  SubflowStatusFrame status = decodeOne<SubflowStatusFrame>(encode(SubflowStatusFrame{9, 77, false}));
  EXPECT_EQ(status.subflow, 9);
  EXPECT_EQ(status.sequence, 77u);
  EXPECT_FALSE(status.available);
  EXPECT_EQ(decodeOne<CloseFrame>(encode(CloseFrame{3})).reason, 3u);
}

TEST(Frames, DataCarriesFlowDsnAndPayload) {
  Bytes bytes(kDataFrameHeader);
  Bytes payload{9, 8, 7};
  writeDataHeader(0x8123, 0x1122334455, payload.size(), bytes.data());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.push_back(0x00);  // PADDING
  DataFrame data = decodeOne<DataFrame>(bytes);
  EXPECT_EQ(data.flow, 0x8123);
  EXPECT_EQ(data.dsn, 0x22334455u);
  EXPECT_EQ(Bytes(data.payload.begin(), data.payload.end()), payload);
}

TEST(Frames, BadValuesAreMalformed) {
  EXPECT_TRUE(malformed({0x05, 0, 1, 0, 0, 0, 0, 0, 0}));     // DATA of length 0
  EXPECT_TRUE(malformed({0x05, 0, 1, 0, 0, 0, 0, 0, 2, 1}));  // DATA cut off
  EXPECT_TRUE(malformed({0x06, 0x80, 0, 1, 1}));              // SKIP of a datagram flow
  EXPECT_TRUE(malformed({0x06, 0, 1, 1, 0}));                 // SKIP of nothing
  EXPECT_TRUE(malformed({0x06, 0, 1, 1, 0x50, 0x01}));        // SKIP of 4097
  EXPECT_TRUE(malformed({0x07, 1, 1, 2}));                    // neither available nor not
  EXPECT_TRUE(malformed({0x03, 1, 2, 3}));                    // token cut off
  EXPECT_TRUE(malformed({0x0d}));                             // unknown type
  EXPECT_TRUE(malformed({0x00, 0x00, 0xff}));                 // unknown type after PADDING
}

TEST(Frames, EveryPrefixOfAFrameIsMalformedOrEmpty) {
  Random random(5);
  for (const Bytes& whole :
       {encode(randomAck(random)), encode(SkipFrame{1, 1 << 20, 3}), encode(CloseFrame{70000}),
        encode(SubflowStatusFrame{1, 70000, true}), encode(PathChallengeFrame{}),
        encode(SubflowPreferenceFrame{1, 70000, {PathUse::kMetered, 7, 2, 1 << 20}})}) {
    for (size_t n = 1; n < whole.size(); ++n)
      EXPECT_TRUE(malformed(Bytes(whole.begin(), whole.begin() + n))) << n;
  }
}

// ---- SUBFLOW_PREFERENCE

TEST(Preference, RoundTripsAtItsBounds) {
  for (const PathPreference& p :
       {PathPreference{}, PathPreference{PathUse::kMetered, 100, 255, PathPreference::kMaxCeiling},
        PathPreference{PathUse::kBackup, 1, 32, PathPreference::kMinCeiling}}) {
    auto frame = decodeOne<SubflowPreferenceFrame>(encode(SubflowPreferenceFrame{9, 77, p}));
    EXPECT_EQ(frame.subflow, 9);
    EXPECT_EQ(frame.sequence, 77u);
    EXPECT_EQ(frame.preference, p);
  }
  EXPECT_EQ(encode(SubflowPreferenceFrame{9, 77, {PathUse::kBackup, 3, 2, 625'000}}),
            (Bytes{0x0c, 9, 0x40, 77, 2, 3, 2, 0x80, 0x09, 0x89, 0x68}));
}

TEST(Preference, OutsideItsRangesIsMalformed) {
  auto raw = [](uint8_t use, uint8_t weight, uint64_t ceiling) {
    return encode(SubflowPreferenceFrame{1, 1, {static_cast<PathUse>(use), weight, 1, ceiling}});
  };
  EXPECT_FALSE(malformed(raw(2, 100, 0)));
  EXPECT_TRUE(malformed(raw(3, 1, 0)));
  EXPECT_TRUE(malformed(raw(255, 1, 0)));
  EXPECT_TRUE(malformed(raw(0, 0, 0)));
  EXPECT_TRUE(malformed(raw(0, 101, 0)));
  EXPECT_TRUE(malformed(raw(0, 1, 1)));
  EXPECT_TRUE(malformed(raw(0, 1, PathPreference::kMinCeiling - 1)));
  EXPECT_TRUE(malformed(raw(0, 1, PathPreference::kMaxCeiling + 1)));
  EXPECT_TRUE(malformed(raw(0, 1, (uint64_t{1} << 62) - 1)));
}

// ---- PARITY, PARITY_TAIL, RECOVERED

using Ranges = std::vector<SymbolRange>;

BlockDescription blockOf(const Ranges& ranges, uint8_t parities = 3, uint16_t symbolSize = 40) {
  BlockDescription block;
  block.block = 0xbeef;
  block.parities = parities;
  block.symbolSize = symbolSize;
  for (const SymbolRange& range : ranges) block.ranges[block.rangeCount++] = range;
  return block;
}

Bytes encodeParity(const BlockDescription& block, size_t index, const Bytes& part) {
  Bytes out(4096);
  Writer writer(out);
  writeParityHeader(writer, block, index, part.size());
  EXPECT_EQ(writer.size(), parityHeaderSize(block));
  writer.bytes(part);
  EXPECT_TRUE(writer.ok());
  out.resize(writer.size());
  return out;
}

Ranges rangesOf(const BlockDescription& block) {
  return {block.ranges.begin(), block.ranges.begin() + static_cast<ptrdiff_t>(block.rangeCount)};
}

/// What a receiver reads that expects `next` on every subflow.
Ranges described(const ParityFrame& frame, uint64_t next) {
  return rangesOf(frame.describe([next](uint8_t) { return next; }));
}

/// PARITY of block 1, index 0 of M 1, symbol size 4, with these groups and parts of 4 bytes.
Bytes rawParity(const Bytes& groups, uint8_t index = 0, uint8_t parities = 1, uint16_t symbolSize = 4,
                const Bytes& part = {1, 2, 3, 4}) {
  Bytes b{0x09, 0, 1, index, parities};
  b.insert(b.end(), {static_cast<uint8_t>(symbolSize >> 8), static_cast<uint8_t>(symbolSize)});
  b.insert(b.end(), groups.begin(), groups.end());
  b.insert(b.end(), {static_cast<uint8_t>(part.size() >> 8), static_cast<uint8_t>(part.size())});
  b.insert(b.end(), part.begin(), part.end());
  return b;
}

TEST(Parity, OneRunTakesSeventeenBytesAndRoundTrips) {
  Bytes part{1, 2, 3, 4, 5};
  Bytes bytes = encodeParity(blockOf({{7, 1000, 10}}), 2, part);
  EXPECT_EQ(bytes.size(), 17u + part.size());
  ParityFrame frame = decodeOne<ParityFrame>(bytes);
  EXPECT_EQ(frame.block, 0xbeef);
  EXPECT_EQ(frame.index, 2);
  EXPECT_EQ(frame.parities, 3);
  EXPECT_EQ(frame.symbolSize, 40);
  EXPECT_EQ(Bytes(frame.part.begin(), frame.part.end()), part);
  EXPECT_EQ(described(frame, 1010), (Ranges{{7, 1000, 10}}));
}

TEST(Parity, RunsOfOneSubflowShareAGroup) {
  Ranges ranges{{7, 1000, 10}, {7, 1011, 1}, {7, 1100, 60}};
  Bytes bytes = encodeParity(blockOf(ranges), 0, {9});
  // Header 10 with the length of the part, group 6, first run 1, then gap and run: 1 + 1 and 2 + 1 bytes.
  EXPECT_EQ(bytes.size(), 10u + 6 + 1 + 2 + 3 + 1);
  EXPECT_EQ(described(decodeOne<ParityFrame>(bytes), 1200), ranges);
}

TEST(Parity, SubflowsAreGroupsInTheOrderOfTheColumns) {
  Ranges ranges{{7, 1000, 10}, {2, 5, 3}, {7, 2000, 1}};
  EXPECT_EQ(described(decodeOne<ParityFrame>(encodeParity(blockOf(ranges), 0, {9})), 1500), ranges);
}

TEST(Parity, RunsOutOfOrderOrFarApartAreGroupsOfTheirOwn) {
  for (const Ranges& ranges :
       {Ranges{{7, 1000, 2}, {7, 900, 2}}, Ranges{{7, 1000, 2}, {7, 1002 + (1 << 14), 2}},
        Ranges{{7, 1000, 2}, {7, 1001 + (1 << 14), 2}}}) {
    Bytes bytes = encodeParity(blockOf(ranges), 0, {9});
    bool near = ranges[1].first == 1001 + (1 << 14);
    EXPECT_EQ(bytes[7], near ? 1 : 2) << "groups";
    EXPECT_EQ(described(decodeOne<ParityFrame>(bytes), 1100), ranges);
  }
}

TEST(Parity, PacketNumbersExpandNextToWhatIsExpectedOnEachSubflow) {
  uint64_t base = uint64_t{5} << 32;
  Ranges ranges{{1, base - 2, 5}, {2, 0xfffffffeu, 5}};  // both runs cross a multiple of 2^32
  Bytes bytes = encodeParity(blockOf(ranges), 0, {9});
  ParityFrame frame = decodeOne<ParityFrame>(bytes);
  BlockDescription read =
      frame.describe([&](uint8_t subflow) { return subflow == 1 ? base + 9 : uint64_t{0x100000009}; });
  EXPECT_EQ(rangesOf(read), ranges);
}

TEST(Parity, AnyBlockRoundTrips) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    BlockDescription block = blockOf({}, static_cast<uint8_t>(1 + random.below(16)),
                                     static_cast<uint16_t>(1 + random.below(65535)));
    size_t left = 1 + random.below(kMaxBlockSymbols);
    uint64_t next = (uint64_t{1} << 33) + random.below(1 << 20);
    while (left > 0) {
      auto count = static_cast<uint32_t>(1 + random.below(std::min<size_t>(left, 9)));
      if (random.chance(0.2)) next = (uint64_t{1} << 33) + random.below(1 << 20);
      next += 1 + random.below(random.chance(0.1) ? 40000 : 5);
      block.ranges[block.rangeCount++] = {static_cast<uint8_t>(random.below(3)), next, count};
      next += count;
      left -= count;
    }
    Bytes part(1 + random.below(std::min<size_t>(block.symbolSize, 300)), 0x5a);
    size_t index = random.below(block.parities);
    Bytes bytes = encodeParity(block, index, part);
    ParityFrame frame = decodeOne<ParityFrame>(bytes);
    ASSERT_EQ(frame.index, index) << "seed " << seed;
    ASSERT_EQ(frame.parities, block.parities) << "seed " << seed;
    ASSERT_EQ(frame.symbolSize, block.symbolSize) << "seed " << seed;
    ASSERT_EQ(described(frame, uint64_t{1} << 33), rangesOf(block)) << "seed " << seed;
    ASSERT_EQ(frame.part.size(), part.size()) << "seed " << seed;
  }
}

TEST(Parity, TheLargestDescriptionIsAccepted) {
  Ranges ranges;
  for (uint64_t i = 0; i < kMaxBlockSymbols; ++i) ranges.push_back({static_cast<uint8_t>(i), 5, 1});
  Bytes bytes = encodeParity(blockOf(ranges, 16, 65535), 15, {1});
  ParityFrame frame = decodeOne<ParityFrame>(bytes);
  EXPECT_EQ(described(frame, 6), ranges);
}

const Bytes kOneSymbol{1, 0, 0, 0, 0, 9, 1, 0};  // one group: subflow 0, packet 9, one run of 1

TEST(Parity, OneToSixteenParities) {
  EXPECT_FALSE(malformed(rawParity(kOneSymbol)));
  EXPECT_FALSE(malformed(rawParity(kOneSymbol, 15, 16)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 0)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 17)));
}

TEST(Parity, TheIndexIsBelowTheirNumber) {
  EXPECT_FALSE(malformed(rawParity(kOneSymbol, 2, 3)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 3, 3)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 255, 3)));
}

TEST(Parity, ThePartIsNotEmptyAndNotLargerThanTheSymbol) {
  EXPECT_FALSE(malformed(rawParity(kOneSymbol, 0, 1, 4, {1})));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 4, {})));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 3)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 0, {})));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 0)));
}

TEST(Parity, OneTo128Symbols) {
  EXPECT_TRUE(malformed(rawParity({0}))) << "no group";
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 0}))) << "a group without runs";
  EXPECT_FALSE(malformed(rawParity({1, 0, 0, 0, 0, 9, 1, 0x40, 127})));
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 1, 0x40, 128})));
  EXPECT_TRUE(malformed(rawParity({2, 0, 0, 0, 0, 9, 1, 0x40, 127, 1, 0, 0, 0, 9, 1, 0}))) << "129 in groups";
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 2, 0x40, 127, 0, 0}))) << "129 in runs";
}

TEST(Parity, RunsAreLessThan16384Apart) {
  EXPECT_FALSE(malformed(rawParity({1, 0, 0, 0, 0, 9, 2, 0, 0x7f, 0xff, 0})));
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 2, 0, 0x80, 0, 0x40, 0, 0})));
}

TEST(ParityTail, RoundTrips) {
  Bytes part{1, 2, 3};
  Bytes bytes(kParityTailHeader);
  Writer writer(bytes);
  writeParityTailHeader(writer, {.block = 0x1234, .index = 3, .offset = 1400, .part = part});
  ASSERT_EQ(writer.size(), kParityTailHeader);
  bytes.insert(bytes.end(), part.begin(), part.end());
  ParityTailFrame tail = decodeOne<ParityTailFrame>(bytes);
  EXPECT_EQ(tail.block, 0x1234);
  EXPECT_EQ(tail.index, 3);
  EXPECT_EQ(tail.offset, 1400);
  EXPECT_EQ(Bytes(tail.part.begin(), tail.part.end()), part);
}

TEST(ParityTail, OfNothingIsMalformed) {
  EXPECT_TRUE(malformed({0x0a, 0, 1, 0, 0, 9, 0, 0}));
  EXPECT_FALSE(malformed({0x0a, 0, 1, 0, 0, 9, 0, 1, 7}));
  EXPECT_TRUE(malformed({0x0a, 0, 1, 0, 0, 9, 0, 2, 7}));
}

TEST(Recovered, RoundTrips) {
  RecoveredFrame frame = decodeOne<RecoveredFrame>(encode(RecoveredFrame{200, 123456789, kMaxBlockSymbols}));
  EXPECT_EQ(frame.subflow, 200);
  EXPECT_EQ(frame.first, 123456789u);
  EXPECT_EQ(frame.count, kMaxBlockSymbols);
}

TEST(Recovered, OneTo128Packets) {
  EXPECT_TRUE(malformed({0x0b, 0, 5, 0}));
  EXPECT_FALSE(malformed({0x0b, 0, 5, 1}));
  EXPECT_FALSE(malformed({0x0b, 0, 5, 0x40, 128}));
  EXPECT_TRUE(malformed({0x0b, 0, 5, 0x40, 129}));
}

TEST(Frames, EveryPrefixOfARecoveryFrameIsMalformed) {
  for (const Bytes& whole :
       {encodeParity(blockOf({{1, 1000, 70}, {1, 1200, 3}, {2, 7, 1}}), 1, Bytes(40, 1)),
        Bytes{0x0a, 0, 1, 0, 0, 9, 0, 3, 7, 8, 9}, encode(RecoveredFrame{1, 70000, 100})}) {
    ASSERT_FALSE(malformed(whole));
    for (size_t n = 1; n < whole.size(); ++n)
      EXPECT_TRUE(malformed(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)))) << n;
  }
}

}  // namespace
}  // namespace braid
