// Each useless copy is counted exactly once, whatever happens between the copy and the ACK that
// reports it.

#include "ackshim/tracks_timer.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/ackshim/rig.h"

namespace braid::trials_test {
namespace {

constexpr uint32_t kLength = 1000;

/// One direction of a flow: segments of kLength bytes.
struct Direction {
  InterventionLog& trials;
  ShimCounters& counters;
  InterventionLog::Newest newest = 0;

  static Seq begin(uint32_t i) { return {i * kLength}; }
  void replays(uint32_t i, Actuator way = Actuator::kFarReplay) {
    trials.onFired(counters, newest, way, begin(i), true);
  }
  void tells(uint32_t i, Actuator way = Actuator::kSackDupAck) {
    trials.onFired(counters, newest, way, begin(i), false);
  }
  void senderRepeats(uint32_t i, std::optional<uint32_t> ts = {}) {
    TcpSegment s;
    s.seq = begin(i), s.end = begin(i + 1);
    if (ts) s.options.timestamps = {*ts, 0};
    trials.onAgain(newest, s);
  }
  bool acks(uint32_t segments, bool tooEarly = false, std::optional<uint32_t> echo = {}) {
    TcpSegment s;
    s.ack = begin(segments);
    if (echo) s.options.timestamps = {0, *echo};
    return trials.onAck(counters, newest, s, true, tooEarly);
  }
  /// A D-SACK for the segments [i, end), in an ACK of `all`.
  bool gotTwice(uint32_t i, uint32_t all, uint32_t end = 0) {
    TcpSegment s;
    s.ack = begin(all);
    s.options.sackCount = 1;
    s.options.sacks[0] = {begin(i), begin(end == 0 ? i + 1 : end)};
    return trials.onAck(counters, newest, s, false, false);
  }
};

struct TrialsTest : testing::Test {
  InterventionLog trials;
  ShimCounters counters;
  Direction flow{trials, counters};

  void expect(Actuator way, uint64_t fired, uint64_t useful, uint64_t spurious) {
    EXPECT_EQ(counters[way].fired, fired) << actuatorName(way);
    EXPECT_EQ(counters[way].useful, useful) << actuatorName(way);
    EXPECT_EQ(counters[way].spurious, spurious) << actuatorName(way);
  }
};

TEST_F(TrialsTest, TwoCopiesThatTheSenderWasTwiceToldToSendAreTwo) {
  flow.tells(0);
  flow.tells(0);
  expect(Actuator::kSackDupAck, 1, 0, 0);
  flow.senderRepeats(0);
  flow.tells(0);
  flow.senderRepeats(0);
  expect(Actuator::kSackDupAck, 2, 0, 0);
  flow.acks(1);
  expect(Actuator::kSackDupAck, 2, 1, 0);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 2, 1, 1);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 2, 0, 2);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 2, 0, 2);
}

TEST_F(TrialsTest, WhatTheSenderSendsUnaskedIsNoCopyOfTheShims) {
  flow.tells(0);
  flow.senderRepeats(0);
  flow.senderRepeats(0);
  flow.acks(1);
  flow.gotTwice(0, 1);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 1, 0, 1);
}

// The first message to the sender was answered, the second was not: only the first one was useful.
TEST_F(TrialsTest, ASecondTellingThatNothingFollowedIsJudgedAlone) {
  flow.tells(0);
  flow.senderRepeats(0);
  flow.tells(0);
  flow.acks(1);
  expect(Actuator::kSackDupAck, 2, 1, 1);
  flow.senderRepeats(0);  // the answer comes too late
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 2, 1, 1);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 2, 0, 2);
}

TEST_F(TrialsTest, CopiesByTwoWaysAreOneOfEach) {
  flow.tells(0);
  flow.senderRepeats(0);
  flow.replays(0, Actuator::kNearReplay);
  flow.acks(1);
  expect(Actuator::kSackDupAck, 1, 0, 0);
  expect(Actuator::kNearReplay, 1, 1, 0);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 1, 0, 1);
  expect(Actuator::kNearReplay, 1, 1, 0);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 1, 0, 1);
  expect(Actuator::kNearReplay, 1, 0, 1);
}

// The sender answers with one copy, however many messages asked for it.
TEST_F(TrialsTest, ATellingThatAnotherTookOverHasNoCopy) {
  flow.tells(0, Actuator::kHole);
  flow.tells(0);
  flow.senderRepeats(0);
  flow.acks(1);
  flow.gotTwice(0, 1);
  flow.gotTwice(0, 1);
  expect(Actuator::kHole, 1, 0, 0);
  expect(Actuator::kSackDupAck, 1, 0, 1);
}

TEST_F(TrialsTest, ADsackThatComesAfterTheNextSegmentWentAgainCounts) {
  flow.replays(0);
  flow.replays(0);
  EXPECT_FALSE(flow.acks(2));
  flow.replays(2);
  EXPECT_FALSE(flow.acks(4));
  flow.replays(4);
  EXPECT_FALSE(flow.gotTwice(0, 4)) << "only counted";
  expect(Actuator::kFarReplay, 4, 2, 1);
  EXPECT_FALSE(flow.gotTwice(0, 4));
  expect(Actuator::kFarReplay, 4, 1, 2);
  EXPECT_FALSE(flow.gotTwice(1, 4)) << "nothing was sent of that one";
  expect(Actuator::kFarReplay, 4, 1, 2);
  EXPECT_FALSE(flow.gotTwice(2, 4));
  expect(Actuator::kFarReplay, 4, 0, 3);
  EXPECT_TRUE(flow.acks(5, true)) << "the newest one tells";
  expect(Actuator::kFarReplay, 4, 0, 4);
  EXPECT_FALSE(flow.gotTwice(4, 5));
  expect(Actuator::kFarReplay, 4, 0, 4);
}

// A receiver may report consecutive duplicates as one range.
TEST_F(TrialsTest, ADsackOverTwoSegmentsIsACopyOfEach) {
  flow.replays(0);
  flow.acks(1);
  flow.replays(1);
  flow.acks(2);
  expect(Actuator::kFarReplay, 2, 2, 0);
  flow.gotTwice(0, 2, 2);
  expect(Actuator::kFarReplay, 2, 0, 2);
}

TEST_F(TrialsTest, ATellingAboutAnotherSegmentWaitsForItsAnswer) {
  flow.tells(3, Actuator::kHole);
  flow.tells(0);
  flow.senderRepeats(3);
  flow.senderRepeats(0);
  flow.acks(5);
  expect(Actuator::kHole, 1, 1, 0);
  expect(Actuator::kSackDupAck, 1, 1, 0);
  flow.gotTwice(3, 5);
  expect(Actuator::kHole, 1, 0, 1);
  expect(Actuator::kSackDupAck, 1, 1, 0);
}

// RFC 3522 section 3.2, with microsecond timestamps one minute apart.
TEST_F(TrialsTest, AnAnswerToTheFirstOneIsKnownByItsTimestamp) {
  flow.tells(0);
  flow.senderRepeats(0, 60'000'000);
  flow.acks(1, false, 0);
  expect(Actuator::kSackDupAck, 1, 0, 1);
  flow.gotTwice(0, 1);
  expect(Actuator::kSackDupAck, 1, 0, 1);
  flow.tells(1);
  flow.senderRepeats(1, 61'000'000);
  flow.acks(2, false, 121'000'000);
  expect(Actuator::kSackDupAck, 2, 1, 1);
}

TEST_F(TrialsTest, FlowsAreKeptApart) {
  Direction other{trials, counters};
  flow.replays(0);
  other.replays(0, Actuator::kNearReplay);
  other.acks(1);
  other.gotTwice(0, 1);
  expect(Actuator::kNearReplay, 1, 0, 1);
  expect(Actuator::kFarReplay, 1, 0, 0);
  flow.gotTwice(0, 1);
  expect(Actuator::kFarReplay, 1, 0, 1);
}

TEST_F(TrialsTest, WhatIsTooLongAgoIsNotJudged) {
  flow.replays(0);
  Direction others{trials, counters};
  for (uint32_t i = 0; i < InterventionLog::kKept - 1; ++i)
    others.replays(i, Actuator::kNearReplay);
  Direction stillKnown = flow;
  stillKnown.gotTwice(0, 1);
  expect(Actuator::kFarReplay, 1, 0, 1);
  Direction old{trials, counters};
  old.replays(0);
  for (uint32_t i = 0; i < InterventionLog::kKept; ++i) others.replays(i, Actuator::kNearReplay);
  old.gotTwice(0, 1);
  expect(Actuator::kFarReplay, 2, 0, 1);
}

// The host was suspended, and all segments and replays wait for it. It acknowledges some of them,
// so that the next one is replayed before the host reports that the first arrived twice.
TEST_F(TrialsTest, AHostThatWasLateWithSeveralSegments) {
  test::Rig rig;
  rig.open({});
  rig.peerSends(0, 4);
  rig.passUntilSpoken(1s);
  ASSERT_EQ(rig.takeToHost().size(), 1u);
  rig.pass(1500us);
  rig.hostAcks(2);
  rig.passUntilSpoken(1s);
  auto next = rig.takeToHost();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].seq(), test::Rig::peerSeg(2).seq);
  auto segment = [](uint32_t i) {
    return SeqRange{{test::Rig::peerSeg(i).seq}, {test::Rig::peerSeg(i).seq + 1000}};
  };
  const ActuatorCounts& replays = rig.count(Actuator::kFarReplay);
  EXPECT_EQ(replays.useful, 1u);
  rig.hostAcks(2, {segment(0)});
  EXPECT_EQ(replays.useful, 0u);
  EXPECT_EQ(replays.spurious, 1u);
  rig.pass(1500us);
  rig.hostAcks(4);
  rig.hostAcks(4, {segment(2)});
  EXPECT_EQ(replays.fired, 2u);
  EXPECT_EQ(replays.useful, 0u);
  EXPECT_EQ(replays.spurious, 2u);
}

}  // namespace
}  // namespace braid::trials_test
