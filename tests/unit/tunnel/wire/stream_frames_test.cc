#include "tunnel/wire/frames.h"

#include <algorithm>

#include "tests/unit/tunnel/wire/frame_bytes.h"

namespace braid::stream_frames_test {
namespace {

const StreamEnds kV4{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")};
const StreamEnds kV6{*Endpoint::parse("[2001:db8::1]:50000"),
                     *Endpoint::parse("[2001:db8:1::7]:8443")};

Bytes unitOf(uint64_t stream, const StreamOpening* opening, size_t bytes) {
  Bytes space(kLargestStreamPrefix + bytes);
  Writer out(space);
  writeStreamPrefix(out, StreamId(stream), opening);
  for (size_t i = 0; i < bytes; ++i) out.u8(static_cast<uint8_t>(i));
  space.resize(out.size());
  return space;
}
Bytes framed(uint8_t type, uint64_t offset, const Bytes& unit) {
  Bytes bytes(kDataFrameHeader);
  writeStreamHeader(type, offset, unit.size(), bytes.data());
  bytes.insert(bytes.end(), unit.begin(), unit.end());
  return bytes;
}
bool reads(const Bytes& bytes) {
  return FrameReader(bytes).next().has_value();
}

TEST(StreamFrames, ARangeSaysWhereItsBytesBelong) {
  Bytes bytes =
      framed(StreamFrame::kFirst | StreamFrame::kFin, 0x123456789abc, unitOf(1000000, nullptr, 5));
  auto frame = decodeOne<StreamFrame>(bytes);
  EXPECT_EQ(frame.offset, 0x123456789abcu);
  EXPECT_EQ(frame.stream, StreamId(1000000));
  EXPECT_TRUE(frame.fin());
  EXPECT_FALSE(frame.opening);
  ASSERT_EQ(frame.bytes.size(), 5u);
  EXPECT_EQ(frame.bytes[4], 4);
  EXPECT_EQ(frame.end(), frame.offset + 5);
  EXPECT_EQ(frame.payload.data() - kDataFrameHeader, bytes.data());
}

TEST(StreamFrames, AnOpeningTellsBothEndsAndTheCredit) {
  for (const StreamEnds& ends : {kV4, kV6}) {
    StreamOpening opening{ends, 300000};
    auto frame = decodeOne<StreamFrame>(
        framed(StreamFrame::kFirst | StreamFrame::kOpen, 0, unitOf(6, &opening, 0)));
    ASSERT_TRUE(frame.opening);
    EXPECT_EQ(frame.opening->ends, ends);
    EXPECT_EQ(frame.opening->credit, 300000u);
    EXPECT_TRUE(frame.bytes.empty());
    EXPECT_FALSE(frame.fin());
  }
}

TEST(StreamFrames, AnOpeningMayAskForAnAnswer) {
  for (const StreamEnds& ends : {kV4, kV6}) {
    for (bool asks : {false, true}) {
      StreamOpening opening{ends, 9, asks};
      auto frame = decodeOne<StreamFrame>(
          framed(StreamFrame::kFirst | StreamFrame::kOpen, 0, unitOf(6, &opening, 0)));
      ASSERT_TRUE(frame.opening);
      EXPECT_EQ(frame.opening->ends, ends);
      EXPECT_EQ(frame.opening->asks, asks);
    }
  }
}

TEST(StreamFrames, ALargestPrefixIsThatOfSixAndSix) {
  StreamOpening opening{kV6, (uint64_t{1} << 62) - 1};
  EXPECT_EQ(unitOf((uint64_t{1} << 62) - 1, &opening, 0).size(), kLargestStreamPrefix);
}

TEST(StreamFrames, WhatIsCutOffIsMalformed) {
  RecordProperty("rule", "stream.unit");
  StreamOpening opening{kV4, 70000};
  Bytes unit = unitOf(70000, &opening, 1);
  uint8_t type = StreamFrame::kFirst | StreamFrame::kOpen;
  EXPECT_TRUE(reads(framed(type, 0, unit)));
  for (size_t n = 0; n + 1 < unit.size(); ++n)
    EXPECT_FALSE(reads(framed(type, 0, {unit.begin(), unit.begin() + static_cast<ptrdiff_t>(n)})))
        << n;
  Bytes whole = framed(type, 0, unit);
  for (size_t n = 1; n < whole.size(); ++n)
    EXPECT_FALSE(reads({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)})) << n;
}

TEST(StreamFrames, OnlyTwoVersionsOfIpAreThere) {
  RecordProperty("rule", "stream.version");
  StreamOpening opening{kV4, 1};
  Bytes unit = unitOf(2, &opening, 40);
  for (unsigned version = 0; version < 256; ++version) {
    unit[1] = static_cast<uint8_t>(version);
    EXPECT_EQ(reads(framed(StreamFrame::kFirst | StreamFrame::kOpen, 0, unit)),
              version == 4 || version == 6 || version == 20 || version == 22)
        << version;
  }
}

TEST(StreamFrames, ARangeWithoutBytesMustOpenOrEnd) {
  RecordProperty("rule", "stream.empty");
  StreamOpening opening{kV4, 1};
  EXPECT_FALSE(reads(framed(StreamFrame::kFirst, 9, unitOf(2, nullptr, 0))));
  EXPECT_TRUE(reads(framed(StreamFrame::kFirst | StreamFrame::kFin, 9, unitOf(2, nullptr, 0))));
  EXPECT_TRUE(reads(framed(StreamFrame::kFirst | StreamFrame::kOpen, 0, unitOf(2, &opening, 0))));
  EXPECT_TRUE(reads(framed(StreamFrame::kLast, 0, unitOf(2, &opening, 0))));
}

TEST(StreamFrames, NoStreamIsLongerThanItsOffsetsSay) {
  RecordProperty("rule", "stream.end");
  EXPECT_TRUE(reads(framed(StreamFrame::kFirst, StreamFrame::kEnd - 4, unitOf(2, nullptr, 3))));
  EXPECT_FALSE(reads(framed(StreamFrame::kFirst, StreamFrame::kEnd - 3, unitOf(2, nullptr, 3))));
}

TEST(StreamFrames, CreditAndResetComeBack) {
  auto credit = decodeOne<StreamCreditFrame>(encode(StreamCreditFrame{StreamId(77), 1 << 20}));
  EXPECT_EQ(credit.stream, StreamId(77));
  EXPECT_EQ(credit.limit, uint64_t{1} << 20);
  auto reset = decodeOne<StreamResetFrame>(encode(StreamResetFrame{StreamId(78), 5}));
  EXPECT_EQ(reset.stream, StreamId(78));
  EXPECT_EQ(reset.code, 5u);
}

/// Splits a unit and checks that both parts together have its contents.
void cutAndCompare(PacketPool& pool, const StreamOpening* opening, size_t bytes, size_t size) {
  uint8_t type = StreamFrame::kFirst | StreamFrame::kFin;
  if (opening) type |= StreamFrame::kOpen;
  Bytes whole = unitOf(300, opening, bytes);
  Packet unit = pool.copy(whole), rest = pool.allocate();
  size_t stays = cutStreamUnit(type, unit, size, rest);
  size_t prefix = whole.size() - bytes;
  if (whole.size() <= size || size <= prefix) {
    EXPECT_EQ(stays, 0u);
    EXPECT_EQ(Bytes(unit.view().begin(), unit.view().end()), whole);
    EXPECT_TRUE(rest.empty());
    return;
  }
  EXPECT_EQ(unit.size(), size);
  StreamFrame first, second;
  first.type = static_cast<uint8_t>(type & ~StreamFrame::kFin);
  second.type = type;
  ASSERT_TRUE(readStreamUnit(unit.view(), first));
  ASSERT_TRUE(readStreamUnit(rest.view(), second));
  EXPECT_EQ(first.stream, second.stream);
  EXPECT_EQ(first.opening.has_value(), second.opening.has_value());
  EXPECT_EQ(first.bytes.size(), stays);
  Bytes together(first.bytes.begin(), first.bytes.end());
  together.insert(together.end(), second.bytes.begin(), second.bytes.end());
  EXPECT_EQ(together, Bytes(whole.begin() + static_cast<ptrdiff_t>(prefix), whole.end()));
}

TEST(StreamFrames, AUnitIsCutAtAnySizeWithoutLoss) {
  PacketPool pool(2048, 8);
  StreamOpening opening{kV6, 99};
  for (size_t size = 0; size < 120; ++size) {
    cutAndCompare(pool, nullptr, 70, size);
    cutAndCompare(pool, &opening, 60, size);
  }
  cutAndCompare(pool, nullptr, 1400, 1165);
}

}  // namespace
}  // namespace braid::stream_frames_test
