#include "tunnel/wire/parameters.h"

#include "base/random.h"
#include "tests/unit/tunnel/wire/frame_bytes.h"

namespace braid::params_test {
namespace {

bool reads(const Bytes& entries) {
  Params params;
  return readParams(entries, params);
}
Bytes written(const Params& params, uint64_t grease) {
  return encode(ParamsFrame{params, grease});
}

TEST(ParamsTest, SayWhatWasWrittenWhateverTheGrease) {
  Params own{.largestDatagram = 1500, .symbols = 0, .heldSpan = 7, .lanes = 3};
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    Params read = decodeOne<ParamsFrame>(written(own, i == 0 ? 0 : random.next())).params;
    EXPECT_EQ(read.largestDatagram, 1500u);
    EXPECT_EQ(read.symbols, 0u);
    EXPECT_EQ(read.heldSpan, 7u);
    EXPECT_EQ(read.lanes, 3u);
  }
}

TEST(ParamsTest, WhatIsNotSaidKeepsItsDefault) {
  RecordProperty("rule", "params.unsaid");
  Params read = decodeOne<ParamsFrame>({kFrame<ParamsFrame>.number, 0, 3, 2, 1, 0}).params;
  EXPECT_EQ(read.symbols, 0u);
  EXPECT_EQ(read.largestDatagram, Params{}.largestDatagram);
  EXPECT_EQ(read.heldSpan, Params{}.heldSpan);
  EXPECT_EQ(read.lanes, Params::kPacketLane);
  EXPECT_TRUE(reads({})) << "nothing at all";
}

TEST(ParamsTest, UnknownEntriesAreSkippedWithoutALook) {
  RecordProperty("rule", "params.unknown");
  // 0x20 with 2 bytes that are no varint, and 27, which is GREASE.
  Bytes bytes{kFrame<ParamsFrame>.number, 0, 9, 2, 1, 5, 27, 0, 0x20, 2, 0xff, 0xff};
  EXPECT_EQ(decodeOne<ParamsFrame>(bytes).params.symbols, 5u);
  EXPECT_TRUE(isGreaseParam(27));
  EXPECT_TRUE(isGreaseParam(31 * 5 + 27));
  EXPECT_FALSE(isGreaseParam(4));
  EXPECT_FALSE(isGreaseParam(28));
}

TEST(ParamsTest, IdsGoUpSoNoneComesTwice) {
  RecordProperty("rule", "params.order");
  EXPECT_TRUE(reads({2, 1, 5, 3, 1, 5}));
  EXPECT_FALSE(reads({2, 1, 5, 2, 1, 5}));
  EXPECT_FALSE(reads({3, 1, 5, 2, 1, 5}));
  EXPECT_FALSE(reads({0x20, 0, 0x20, 0})) << "unknown ones, too";
}

TEST(ParamsTest, LengthsThatDoNotFitAreMalformed) {
  RecordProperty("rule", "params.length");
  EXPECT_FALSE(reads({2}));
  EXPECT_FALSE(reads({2, 1}));
  EXPECT_FALSE(reads({2, 2, 5, 5})) << "more than the value";
  EXPECT_FALSE(reads({2, 1, 0x45})) << "less than the value";
  EXPECT_FALSE(reads({2, 0}));
  EXPECT_FALSE(reads({0x20, 9, 0}));
  EXPECT_FALSE(reads({0x40})) << "half an id";
  EXPECT_TRUE(malformed({kFrame<ParamsFrame>.number, 0, 4, 2, 1, 5}));
  EXPECT_TRUE(malformed({kFrame<ParamsFrame>.number, 0}));
}

TEST(ParamsTest, ValuesHaveARange) {
  RecordProperty("rule", "params.span params.lanes");
  EXPECT_TRUE(reads({1, 2, 0x44, 0xb0})) << 1200;
  EXPECT_FALSE(reads({1, 2, 0x44, 0xaf})) << 1199;
  EXPECT_TRUE(reads({2, 1, 0}));
  EXPECT_FALSE(reads({3, 1, 0}));
  EXPECT_TRUE(reads({3, 1, 1}));
  EXPECT_TRUE(reads({4, 1, 0}));
}

TEST(OptionalFrames, OfEveryTypeAreSkippedWithTheirContent) {
  RecordProperty("rule", "optional.content");
  for (unsigned type = 0x40; type < 0x80; ++type) {
    SCOPED_TRACE(type);
    Bytes bytes{static_cast<uint8_t>(type), 0, 3, 0xff, 0xff, 0xff, kFrame<PingFrame>.number};
    FrameReader reader(bytes);
    std::optional<WireFrame> first = reader.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(traitsOf(*first).eliciting, type < 0x60)
        << "who does not know it acknowledges it, or not";
    ASSERT_TRUE(reader.next());
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.ok());
    bytes.resize(5);
    EXPECT_TRUE(malformed(bytes)) << "shorter than it says";
  }
}

TEST(OptionalFrames, AreWrittenAsTheyAreRead) {
  auto asking = decodeOne<OptionalAskingFrame>(encode(OptionalAskingFrame{0x5e, kMaxGrease}));
  EXPECT_EQ(asking.type, 0x5e);
  EXPECT_EQ(asking.size, kMaxGrease);
  auto silent = decodeOne<OptionalFrame>(encode(OptionalFrame{0x7f, 0}));
  EXPECT_EQ(silent.type, 0x7f);
  EXPECT_EQ(silent.size, 0);
}

TEST(OptionalFrames, OtherUnknownTypesAreMalformed) {
  RecordProperty("rule", "frame.type");
  for (unsigned type : {0x13u, 0x18u, 0x3fu, 0x80u, 0xffu})
    EXPECT_TRUE(malformed({static_cast<uint8_t>(type), 0, 0})) << type;
}

TEST(ParamsTest, OnlyWhoCanDoStreamsSpeaksOfThem) {
  RecordProperty("rule", "params.streams");
  Params silent{.streams = 5, .streamCredit = 6};
  EXPECT_EQ(written(silent, 0), written({}, 0)) << "as before there were streams";
  Params own{.lanes = Params::kPacketLane | Params::kStreamLane, .streams = 5, .streamCredit = 6};
  Params read = decodeOne<ParamsFrame>(written(own, 0)).params;
  EXPECT_TRUE(read.hasStreams());
  EXPECT_EQ(read.streams, 5u);
  EXPECT_EQ(read.streamCredit, 6u);
  Params unsaid = decodeOne<ParamsFrame>({kFrame<ParamsFrame>.number, 0, 3, 4, 1, 3}).params;
  EXPECT_TRUE(unsaid.hasStreams());
  EXPECT_EQ(unsaid.streams, 0u);
  EXPECT_EQ(unsaid.streamCredit, 65536u);
}

TEST(ParamsTest, ReceiveTimesAreAskedForOrNotSpokenOf) {
  RecordProperty("rule", "params.times");
  EXPECT_EQ(decodeOne<ParamsFrame>(written({}, 0)).params.receiveTimes, 0u);
  EXPECT_EQ(written({.receiveTimes = 1}, 0).size(), written({}, 0).size() + 3);
  EXPECT_EQ(decodeOne<ParamsFrame>(written({.receiveTimes = 1}, 0)).params.receiveTimes, 1u);
  EXPECT_TRUE(reads({7, 1, 0}));
  EXPECT_TRUE(reads({7, 2, 0x40, 200}));
}

}  // namespace
}  // namespace braid::params_test
