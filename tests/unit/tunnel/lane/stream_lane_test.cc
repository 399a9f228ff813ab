// The memory that stream lanes of several sessions share.

#include "tunnel/lane/stream_lane.h"

#include <gtest/gtest.h>

#include <vector>

#include "tunnel/lane/fair_round.h"

namespace braid::stream_lane_test {
namespace {

constexpr size_t kBytes = 1000;  // of a frame

/// The receiving half of a session's streams; a test sends.
struct Receiver {
  Receiver(const StreamOptions& options, PacketPool& pool, uint32_t session)
      : pool_(pool), trace(sink, session), lane({options, pool, ledger, round, trace, session, true}) {}

  /// The next bytes of a stream that the peer has opened. False: they are to come again.
  bool give(uint64_t number, Time now) {
    StreamFrame frame;
    frame.type = StreamFrame::kFirst | StreamFrame::kOpen;
    frame.opening =
        StreamOpening{{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")}, 1000};
    frame.stream = StreamId(2 * number + 1);
    if (sent.size() <= number) sent.resize(number + 1);
    frame.offset = sent[number];
    std::vector<uint8_t> bytes(kBytes);
    frame.bytes = bytes;
    if (lane.admit(frame, now) != StreamLane::Verdict::kTaken) return false;
    lane.onFrame(frame, pool_.copy(bytes), now);
    sent[number] += kBytes;
    return true;
  }

  PacketPool& pool_;
  DataLedger ledger{3s};
  FairRound round;
  TraceSink* sink = nullptr;
  RecoveryTrace trace;
  StreamLane lane;
  std::vector<uint64_t> sent;
};

class StreamLaneTest : public testing::Test {
 protected:
  StreamLaneTest() {
    options.on = true;
    options.desk = &desk;
    options.memory = &memory;
    options.firstUpload = options.mostCredit = 4 << 20;
  }
  /// Streams of it that ended at a bound.
  static uint64_t limited(const Receiver& r) { return r.lane.counts().streamsLimited; }
  void expectThatWhoHoldsMostGivesWay(size_t most) {
    Receiver greedy(options, pool, 1), modest(options, pool, 2);
    for (uint64_t i = 0; i < most; ++i) ASSERT_TRUE(greedy.give(i % 8, now)) << i;
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(modest.give(0, now)) << i << ": its peer holds next to nothing";
    EXPECT_EQ(limited(modest), 0u);
    EXPECT_GT(limited(greedy), 0u);
    EXPECT_LT(limited(greedy), 8u) << "no more of them than room is needed for";
  }

  StreamDesk desk;
  Budget memory{64 << 20};
  PacketPool pool{2000, 512};
  StreamOptions options;
  Time now = Time{} + 1s;
};

TEST_F(StreamLaneTest, ASessionThatHoldsAllBuffersGivesWayToAnother) {
  expectThatWhoHoldsMostGivesWay(pool.budget(PacketUse::kHeld).limit());
}

TEST_F(StreamLaneTest, ASessionThatHoldsAllBytesGivesWayToAnother) {
  Budget little{100 * (pool.allocate().footprint() + sizeof(StreamChunk))};
  options.memory = &little;
  expectThatWhoHoldsMostGivesWay(100);
}

TEST_F(StreamLaneTest, ASessionOfTheSameSizeDoesNot) {
  Receiver one(options, pool, 1), other(options, pool, 2);
  size_t half = pool.budget(PacketUse::kHeld).limit() / 2;
  for (uint64_t i = 0; i < half; ++i) ASSERT_TRUE(one.give(i % 8, now) && other.give(i % 8, now));
  other.give(0, now);
  EXPECT_EQ(limited(one), 0u);
  EXPECT_EQ(limited(other), 1u) << "its own slowest reader has gone";
}

TEST_F(StreamLaneTest, AfterThePeerHadNoRoomASessionAtRestIsWokenToOpenStreamsAgain) {
  Receiver r(options, pool, 1);
  Params peer;
  peer.lanes = Params::kStreamLane;
  peer.streams = 10;
  peer.streamCredit = 1000;
  r.lane.setPeer(peer);
  StreamEnds ends{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")};
  ASSERT_TRUE(r.lane.open(ends, now));
  r.lane.onReset({StreamId(0), static_cast<uint64_t>(StreamCause::kLimit)}, now);
  r.lane.update(now);
  EXPECT_FALSE(r.lane.mayTakeOver());
  ASSERT_EQ(r.lane.nextDeadline(), now + StreamLane::kTurnedAway);
  r.lane.update(r.lane.nextDeadline());
  EXPECT_TRUE(r.lane.mayTakeOver());
  EXPECT_EQ(r.lane.nextDeadline(), kNever);
}

}  // namespace
}  // namespace braid::stream_lane_test
