#include "tunnel/wire.h"

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
  EXPECT_TRUE(malformed({0x09}));                             // unknown type
  EXPECT_TRUE(malformed({0x00, 0x00, 0xff}));                 // unknown type after PADDING
}

TEST(Frames, EveryPrefixOfAFrameIsMalformedOrEmpty) {
  Random random(5);
  for (const Bytes& whole :
       {encode(randomAck(random)), encode(SkipFrame{1, 1 << 20, 3}), encode(CloseFrame{70000}),
        encode(SubflowStatusFrame{1, 70000, true}), encode(PathChallengeFrame{})}) {
    for (size_t n = 1; n < whole.size(); ++n)
      EXPECT_TRUE(malformed(Bytes(whole.begin(), whole.begin() + n))) << n;
  }
}

}  // namespace
}  // namespace braid
