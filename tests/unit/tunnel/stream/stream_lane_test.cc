// The resources that the streams of several sessions share: memory, and the rate limit of openings.

#include "tunnel/stream/session_streams.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tunnel/queue/drr.h"

namespace braid::stream_lane_test {
namespace {

constexpr size_t kBytes = 1000;  // of a frame

/// The receiving side of a session's streams. The test sends.
struct Receiver {
  Receiver(const StreamOptions& options, PacketPool& pool, StreamRegistry& registry,
           MemoryQuota* memory, uint32_t session,
           std::shared_ptr<StreamRateLimits> ofPeer = std::make_shared<StreamRateLimits>())
      : pool_(pool),
        rations(std::move(ofPeer)),
        trace(sink, session),
        lane({options, pool, dataTracker, trace, *rations, &registry, memory, session, true},
             round) {}

  /// The next bytes of a stream that the peer has opened. False when they must be resent.
  bool give(uint64_t number, Time now) {
    StreamFrame frame;
    frame.type = StreamFrame::kFirst | StreamFrame::kOpen;
    frame.opening = StreamOpening{
        {*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")}, 1000};
    frame.stream = StreamId(2 * number + 1);
    if (sent.size() <= number) sent.resize(number + 1);
    frame.offset = sent[number];
    std::vector<uint8_t> bytes(kBytes);
    frame.bytes = bytes;
    if (lane.admit(frame, now) != SessionStreams::Verdict::kTaken) return false;
    lane.onFrame(frame, pool_.copy(bytes), now);
    sent[number] += kBytes;
    return true;
  }

  PacketPool& pool_;
  std::shared_ptr<StreamRateLimits> rations;
  DataTracker dataTracker{3s};
  DrrScheduler round;
  TraceSink* sink = nullptr;
  RecoveryTrace trace;
  SessionStreams lane;
  std::vector<uint64_t> sent;
};

class StreamLaneTest : public testing::Test {
 protected:
  StreamLaneTest() {
    options.on = true;
    options.firstUpload = options.mostCredit = 4 << 20;
  }
  /// The result of flood(): `count` streams are opened at once, with numbers from `first` on. The
  /// driver releases every stream that it is told of.
  struct Outcome {
    size_t opened = 0, reset = 0, dropped = 0;
    bool operator==(const Outcome&) const = default;
  };
  Outcome flood(Receiver& r, uint64_t first, size_t count) {
    Outcome out;
    size_t before = r.lane.counts().streamsAccepted;
    for (uint64_t n = first; n < first + count; ++n) {
      StreamFrame frame;
      frame.type = StreamFrame::kFirst | StreamFrame::kOpen;
      frame.opening = StreamOpening{
          {*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")}, 1000};
      frame.stream = StreamId(2 * n + 1);
      out.dropped += r.lane.admit(frame, now) == SessionStreams::Verdict::kNoRoom;
    }
    out.opened = r.lane.counts().streamsAccepted - before;
    for (StreamResetFrame reset; r.lane.pollReset(reset); ++out.reset)
      EXPECT_EQ(reset.code, static_cast<uint64_t>(StreamCause::kLimit));
    StreamEvent event;
    while (registry.poll(event))
      if (Stream* stream = registry.find(event.stream))
        r.lane.reset(*stream, StreamCause::kReset, now);
    for (StreamResetFrame reset; r.lane.pollReset(reset);) continue;
    return out;
  }
  Params able() const {
    Params peer;
    peer.lanes = Params::kStreamLane;
    peer.streams = 16384;
    peer.streamCredit = 1000;
    return peer;
  }
  /// Its streams that were refused because of a limit.
  static uint64_t limited(const Receiver& r) { return r.lane.counts().streamsLimited; }
  void expectThatWhoHoldsMostGivesWay(size_t most) {
    Receiver greedy(options, pool, registry, quota, 1), modest(options, pool, registry, quota, 2);
    for (uint64_t i = 0; i < most; ++i) ASSERT_TRUE(greedy.give(i % 8, now)) << i;
    for (int i = 0; i < 10; ++i)
      EXPECT_TRUE(modest.give(0, now)) << i << ": its peer holds next to nothing";
    EXPECT_EQ(limited(modest), 0u);
    EXPECT_GT(limited(greedy), 0u);
    EXPECT_LT(limited(greedy), 8u) << "no more of them than room is needed for";
  }

  StreamRegistry registry;
  MemoryQuota memory{64 << 20};
  MemoryQuota* quota = &memory;
  PacketPool pool{2000, 512};
  StreamOptions options;
  Time now = Time{} + 1s;
};

TEST_F(StreamLaneTest, ASessionThatHoldsAllBuffersGivesWayToAnother) {
  expectThatWhoHoldsMostGivesWay(pool.quota(PacketUse::kHeld).limit());
}

TEST_F(StreamLaneTest, ASessionThatHoldsAllBytesGivesWayToAnother) {
  MemoryQuota little{100 * (pool.allocate().footprint() + sizeof(StreamChunk))};
  quota = &little;
  expectThatWhoHoldsMostGivesWay(100);
}

TEST_F(StreamLaneTest, ASessionOfTheSameSizeDoesNot) {
  Receiver one(options, pool, registry, quota, 1), other(options, pool, registry, quota, 2);
  size_t half = pool.quota(PacketUse::kHeld).limit() / 2;
  for (uint64_t i = 0; i < half; ++i) ASSERT_TRUE(one.give(i % 8, now) && other.give(i % 8, now));
  other.give(0, now);
  EXPECT_EQ(limited(one), 0u);
  EXPECT_EQ(limited(other), 1u) << "its own slowest reader has gone";
}

// Opening a stream takes a few bytes but makes this side's kernel connect: 10,000 per second used
// most of a CPU core.
TEST_F(StreamLaneTest, APeerOpensNoMoreStreamsThanItsRation) {
  RecordProperty("rule", "stream.ration");
  options.newPerSecond = 100;
  Receiver r(options, pool, registry, quota, 1);
  EXPECT_EQ(flood(r, 0, 5000), (Outcome{400, 100, 4500}));
  EXPECT_EQ(r.lane.counts().streamsTurnedAway, 4600u);
  EXPECT_EQ(r.lane.size(), 0u) << "nothing is kept of those that were refused";
  EXPECT_EQ(flood(r, 5000, 10), (Outcome{0, 0, 10}));
  now += 1s;
  EXPECT_EQ(flood(r, 6000, 5000), (Outcome{100, 100, 4800}));
  now += 1h;
  EXPECT_EQ(flood(r, 20000, 5000), (Outcome{400, 100, 4500})) << "after a pause as at first";
}

TEST_F(StreamLaneTest, WhatIsNotAcknowledgedComesAgainAndOpens) {
  options.newPerSecond = 100;
  Receiver r(options, pool, registry, quota, 1);
  flood(r, 0, 5000);
  now += 1s;
  EXPECT_EQ(flood(r, 4990, 10).opened, 10u);
  EXPECT_EQ(flood(r, 400, 100), (Outcome{0, 0, 0})) << "those that were reset are over";
}

TEST_F(StreamLaneTest, ANewSessionGivesAPeerNoMoreStreams) {
  options.newPerSecond = 100;
  Receiver r(options, pool, registry, quota, 1);
  EXPECT_EQ(flood(r, 0, 1000).opened, 400u);
  Receiver next(options, pool, registry, quota, 2, r.rations),
      other(options, pool, registry, quota, 3);
  EXPECT_EQ(flood(next, 0, 1000).opened, 0u);
  EXPECT_EQ(flood(other, 0, 1000).opened, 400u) << "another peer has its own";
}

TEST_F(StreamLaneTest, OpeningsThatAreTooLateToTellAreRationedToo) {
  options.newPerSecond = 100;
  Receiver r(options, pool, registry, quota, 1);
  EXPECT_EQ(flood(r, 2 * StreamIdFilter::kWindow, 1).opened, 1u);
  size_t dropped = 0;
  for (uint64_t n = 0; n < 1000; ++n) {
    StreamFrame frame;
    frame.type = StreamFrame::kFirst | StreamFrame::kOpen;
    frame.opening =
        StreamOpening{{*Endpoint::parse("10.0.0.1:1"), *Endpoint::parse("192.0.2.7:443")}, 0};
    frame.stream = StreamId(2 * n + 1);
    dropped += r.lane.admit(frame, now) == SessionStreams::Verdict::kNoRoom;
  }
  EXPECT_EQ(dropped, 900u);
}

TEST_F(StreamLaneTest, ThisSideKeepsToItsRationAndLeavesTheRestToPackets) {
  options.newPerSecond = 100;
  Receiver r(options, pool, registry, quota, 1);
  r.lane.setPeerParams(able());
  StreamEnds ends{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")};
  auto open = [&] {
    StreamHandle handle = r.lane.open(ends, now);
    if (Stream* stream = registry.find(handle)) r.lane.reset(*stream, StreamCause::kReset, now);
    return static_cast<bool>(handle);
  };
  size_t opened = 0;
  for (; r.lane.mayIntercept(); ++opened) ASSERT_TRUE(open());
  EXPECT_EQ(opened, 151u) << "a quarter is left for those on their way";
  while (open()) ++opened;
  EXPECT_EQ(opened, 200u);
  now += 20ms;
  EXPECT_TRUE(open()) << "fifty a second";
  EXPECT_FALSE(open());
  const Time then = r.lane.nextDeadline();
  EXPECT_GT(then, now + 1s);
  EXPECT_LE(then, now + 2s);
  r.lane.update(then - 1ns);
  EXPECT_FALSE(r.lane.mayIntercept());
  r.lane.update(then);
  EXPECT_TRUE(r.lane.mayIntercept()) << "half of what may be at once";
}

// Also when all streams opened during an outage arrive at once.
TEST_F(StreamLaneTest, WhoKeepsToItsOwnRationIsNeverRefused) {
  std::minstd_rand dice(1);
  for (uint32_t rate : {1u, 2u, 3u, 100u, 512u, 100'000u}) {
    TokenBucket opened, taken;
    Time at = now, silentUntil = now;
    size_t waiting = 0;
    for (int i = 0; i < 20'000; ++i) {
      at += Duration(1s) / rate / 4 * (dice() % 5);
      if (dice() % 1000 == 0) silentUntil = at + 3s;
      if (dice() % 1000 == 0) at += 10s;
      waiting += opened.take(StreamRateLimits::own(rate), at);
      for (; at >= silentUntil && waiting > 0; --waiting)
        ASSERT_TRUE(taken.take(StreamRateLimits::ofPeer(rate), at)) << rate;
    }
  }
}

TEST_F(StreamLaneTest, AfterThePeerHadNoRoomASessionAtRestIsWokenToOpenStreamsAgain) {
  Receiver r(options, pool, registry, quota, 1);
  Params peer;
  peer.lanes = Params::kStreamLane;
  peer.streams = 10;
  peer.streamCredit = 1000;
  r.lane.setPeerParams(peer);
  StreamEnds ends{*Endpoint::parse("10.0.0.1:50000"), *Endpoint::parse("192.0.2.7:443")};
  ASSERT_TRUE(r.lane.open(ends, now));
  r.lane.onReset({StreamId(0), static_cast<uint64_t>(StreamCause::kLimit)}, now);
  r.lane.update(now);
  EXPECT_FALSE(r.lane.mayIntercept());
  ASSERT_EQ(r.lane.nextDeadline(), now + SessionStreams::kPauseAfterRefusal);
  r.lane.update(r.lane.nextDeadline());
  EXPECT_TRUE(r.lane.mayIntercept());
  EXPECT_EQ(r.lane.nextDeadline(), kNever);
}

}  // namespace
}  // namespace braid::stream_lane_test
