#include "tunnel/wire/frames.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/frame_bytes.h"

namespace braid::frames_test {
namespace {

AckFrame randomAck(Random& random) {
  AckFrame ack;
  ack.subflow = SubflowId(static_cast<uint8_t>(random.below(256)));
  ack.delay = std::chrono::microseconds(random.below(5000));
  ack.ecn = {random.below(1 << 20), random.below(100), random.below(70000)};
  ack.count = 1 + random.below(kMaxAckRanges);
  PacketNumber last((uint64_t{1} << 30) + random.below(uint64_t{1} << 40));
  for (size_t i = 0; i < ack.count; ++i) {
    PacketNumber first = last - random.below(random.chance(0.1) ? 5000 : 4);
    ack.ranges[i] = {first, last};
    last = first - 2 - random.below(random.chance(0.1) ? 5000 : 4);
  }
  return ack;
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
  RecordProperty("rule", "ack.count ack.range");
  EXPECT_TRUE(malformed({0x02, 0, 3, 0, 1, 4, 0, 0, 0}));   // first range reaches below 0
  EXPECT_FALSE(malformed({0x02, 0, 3, 0, 1, 3, 0, 0, 0}));  // 0..3
  EXPECT_TRUE(
      malformed({0x02, 0, 3, 0, 2, 2, 0, 0, 0, 0, 0}));  // gap reaches below 0: smallest is 1
  EXPECT_FALSE(malformed({0x02, 0, 3, 0, 2, 1, 0, 0, 0, 0, 0}));  // 2..3 and 0
  EXPECT_TRUE(malformed({0x02, 0, 3, 0, 0, 0, 0, 0, 0}));         // no range
  EXPECT_TRUE(malformed({0x02, 0, 63, 0, 33, 0, 0, 0, 0}));       // more than kMaxAckRanges
}

TEST(Frames, TheDelayOfAnAckIsBounded) {
  RecordProperty("rule", "ack.delay");
  constexpr auto kMost = std::chrono::microseconds(1 << 24);
  AckFrame ack;
  ack.count = 1;
  ack.ranges[0] = {5_pn, 5_pn};
  for (auto delay :
       {kMost - 1us, kMost, kMost + 1us, std::chrono::microseconds((int64_t{1} << 62) - 1)}) {
    ack.delay = delay;
    EXPECT_EQ(decodeOne<AckFrame>(encode(ack)).delay, std::min(delay, kMost));
  }
}

TEST(Frames, ANumberMayBeLongerThanItNeedsToBe) {
  RecordProperty("rule", "frame.varint");
  for (const Bytes& reason :
       {Bytes{7}, Bytes{0x40, 7}, Bytes{0x80, 0, 0, 7}, Bytes{0xc0, 0, 0, 0, 0, 0, 0, 7}}) {
    Bytes bytes{kFrame<CloseFrame>.number};
    bytes.insert(bytes.end(), reason.begin(), reason.end());
    EXPECT_EQ(decodeOne<CloseFrame>(bytes).reason, 7u) << reason.size();
  }
}

TEST(Frames, EachTypeRoundTrips) {
  decodeOne<PingFrame>(encode(PingFrame{}));
  PathToken token{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(decodeOne<PathChallengeFrame>(encode(PathChallengeFrame{token})).token, token);
  EXPECT_EQ(decodeOne<PathResponseFrame>(encode(PathResponseFrame{token})).token, token);
  SkipFrame skip = decodeOne<SkipFrame>(encode(SkipFrame{7_flow, 123456789_dsn, kMaxSkip}));
  EXPECT_EQ(skip.flow, 7_flow);
  EXPECT_EQ(skip.first, 123456789_dsn);
  EXPECT_EQ(skip.count, kMaxSkip);
  SubflowStatusFrame status =
      decodeOne<SubflowStatusFrame>(encode(SubflowStatusFrame{9_subflow, 77, false}));
  EXPECT_EQ(status.subflow, 9_subflow);
  EXPECT_EQ(status.sequence, 77u);
  EXPECT_FALSE(status.available);
  EXPECT_EQ(decodeOne<CloseFrame>(encode(CloseFrame{3})).reason, 3u);
  EXPECT_EQ(decodeOne<RenewKeysFrame>(encode(RenewKeysFrame{0x01020304})).handshake, 0x01020304u);
  for (bool ready : {false, true}) {
    KeysReadyFrame answer = decodeOne<KeysReadyFrame>(encode(KeysReadyFrame{0xfffefdfc, ready}));
    EXPECT_EQ(answer.handshake, 0xfffefdfcu);
    EXPECT_EQ(answer.ready, ready);
  }
}

TEST(Frames, DataCarriesFlowDsnAndPayload) {
  Bytes bytes(kDataFrameHeader);
  Bytes payload{9, 8, 7};
  writeDataHeader(0x8123_flow, 0x1122334455_dsn, payload.size(), bytes.data());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.push_back(0x00);  // PADDING
  DataFrame data = decodeOne<DataFrame>(bytes);
  EXPECT_EQ(data.flow, 0x8123_flow);
  EXPECT_EQ(data.dsn, 0x22334455u);
  EXPECT_EQ(Bytes(data.payload.begin(), data.payload.end()), payload);
}

TEST(Frames, BadValuesAreMalformed) {
  RecordProperty("rule", "data.length skip.flow skip.count status.available keys.ready");
  EXPECT_TRUE(malformed({0x05, 0, 1, 0, 0, 0, 0, 0, 0}));     // DATA of length 0
  EXPECT_TRUE(malformed({0x05, 0, 1, 0, 0, 0, 0, 0, 2, 1}));  // DATA cut off
  EXPECT_TRUE(malformed({0x06, 0x80, 0, 1, 1}));              // SKIP of a datagram flow
  EXPECT_TRUE(malformed({0x06, 0, 1, 1, 0}));                 // SKIP of nothing
  EXPECT_TRUE(malformed({0x06, 0, 1, 1, 0x50, 0x01}));        // SKIP of 4097
  EXPECT_TRUE(malformed({0x07, 1, 1, 2}));                    // neither available nor not
  EXPECT_TRUE(malformed({0x0e, 1, 2, 3, 4, 2}));              // neither ready nor not
  EXPECT_TRUE(malformed({0x03, 1, 2, 3}));                    // token cut off
  EXPECT_TRUE(malformed({0x0f}));                             // unknown type
  EXPECT_TRUE(malformed({0x00, 0x00, 0xff}));                 // unknown type after PADDING
}

TEST(Frames, EveryPrefixOfAFrameIsMalformedOrEmpty) {
  RecordProperty("rule", "frame.whole");
  Random random(5);
  for (const Bytes& whole :
       {encode(randomAck(random)), encode(SkipFrame{1_flow, Dsn(1 << 20), 3}),
        encode(CloseFrame{70000}), encode(SubflowStatusFrame{1_subflow, 70000, true}),
        encode(PathChallengeFrame{}), encode(RenewKeysFrame{7}), encode(KeysReadyFrame{7, true}),
        encode(SubflowPreferenceFrame{1_subflow, 70000, {PathUse::kMetered, 7, 2, 1 << 20}})}) {
    for (size_t n = 1; n < whole.size(); ++n)
      EXPECT_TRUE(malformed(Bytes(whole.begin(), whole.begin() + n))) << n;
  }
}

// ---- SUBFLOW_PREFERENCE

TEST(Preference, RoundTripsAtItsBounds) {
  for (const PathPreference& p :
       {PathPreference{}, PathPreference{PathUse::kMetered, 100, 255, PathPreference::kMaxCeiling},
        PathPreference{PathUse::kBackup, 1, 32, PathPreference::kMinCeiling}}) {
    auto frame =
        decodeOne<SubflowPreferenceFrame>(encode(SubflowPreferenceFrame{9_subflow, 77, p}));
    EXPECT_EQ(frame.subflow, 9_subflow);
    EXPECT_EQ(frame.sequence, 77u);
    EXPECT_EQ(frame.preference, p);
  }
  EXPECT_EQ(encode(SubflowPreferenceFrame{9_subflow, 77, {PathUse::kBackup, 3, 2, 625'000}}),
            (Bytes{0x0c, 9, 0x40, 77, 2, 3, 2, 0x80, 0x09, 0x89, 0x68}));
}

TEST(Preference, OutsideItsRangesIsMalformed) {
  RecordProperty("rule", "preference.use preference.weight preference.ceiling");
  auto raw = [](uint8_t use, uint8_t weight, uint64_t ceiling) {
    return encode(
        SubflowPreferenceFrame{1_subflow, 1, {static_cast<PathUse>(use), weight, 1, ceiling}});
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

// ---- PARITY_TAIL, RECOVERED

TEST(ParityTail, RoundTrips) {
  Bytes part{1, 2, 3};
  Bytes bytes(kParityTailHeader);
  Writer writer(bytes);
  writeParityTailHeader(writer, {.block = 0x1234_block, .index = 3, .offset = 1400, .part = part});
  ASSERT_EQ(writer.size(), kParityTailHeader);
  bytes.insert(bytes.end(), part.begin(), part.end());
  ParityTailFrame tail = decodeOne<ParityTailFrame>(bytes);
  EXPECT_EQ(tail.block, 0x1234_block);
  EXPECT_EQ(tail.index, 3);
  EXPECT_EQ(tail.offset, 1400);
  EXPECT_EQ(Bytes(tail.part.begin(), tail.part.end()), part);
}

TEST(ParityTail, OfNothingIsMalformed) {
  RecordProperty("rule", "tail.part");
  EXPECT_TRUE(malformed({0x0a, 0, 1, 0, 0, 9, 0, 0}));
  EXPECT_FALSE(malformed({0x0a, 0, 1, 0, 0, 9, 0, 1, 7}));
  EXPECT_TRUE(malformed({0x0a, 0, 1, 0, 0, 9, 0, 2, 7}));
}

TEST(Recovered, RoundTrips) {
  RecoveredFrame frame = decodeOne<RecoveredFrame>(
      encode(RecoveredFrame{200_subflow, 123456789_pn, kMaxBlockSymbols}));
  EXPECT_EQ(frame.subflow, 200_subflow);
  EXPECT_EQ(frame.first, 123456789_pn);
  EXPECT_EQ(frame.count, kMaxBlockSymbols);
}

TEST(Recovered, OneTo128Packets) {
  RecordProperty("rule", "recovered.count");
  EXPECT_TRUE(malformed({0x0b, 0, 5, 0}));
  EXPECT_FALSE(malformed({0x0b, 0, 5, 1}));
  EXPECT_FALSE(malformed({0x0b, 0, 5, 0x40, 128}));
  EXPECT_TRUE(malformed({0x0b, 0, 5, 0x40, 129}));
}

TEST(Frames, EveryPrefixOfARecoveryFrameIsMalformed) {
  for (const Bytes& whole : {Bytes{0x0a, 0, 1, 0, 0, 9, 0, 3, 7, 8, 9},
                             encode(RecoveredFrame{1_subflow, 70000_pn, 100})}) {
    ASSERT_FALSE(malformed(whole));
    for (size_t n = 1; n < whole.size(); ++n)
      EXPECT_TRUE(malformed(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)))) << n;
  }
}

}  // namespace
}  // namespace braid::frames_test
