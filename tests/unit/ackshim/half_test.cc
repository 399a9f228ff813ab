#include "ackshim/direction.h"

#include <gtest/gtest.h>

namespace braid::half_test {
namespace {

struct HalfTest : testing::Test {
  static Timestamp32 at(Duration d) { return Timestamp32{5} + d; }
  static TcpSegment data(uint32_t seq, uint32_t length, std::optional<TcpTimestamps> ts = {}) {
    TcpSegment s;
    s.flags = TcpFields::kAck;
    s.seq = {seq};
    s.length = length;
    s.end = s.seq + length;
    s.options.timestamps = ts;
    return s;
  }
  static TcpSegment ack(uint32_t number, std::optional<TcpTimestamps> ts = {}) {
    TcpSegment s;
    s.flags = TcpFields::kAck;
    s.seq = s.end = {9};
    s.ack = {number};
    s.window = 100;
    s.options.timestamps = ts;
    return s;
  }
  void begin(uint32_t seq) {
    half.beginAt({seq}, at(0ms));
    half.onAck(ack(seq), {9}, 100'000, at(0ms));
  }
  TcpDirection::Data send(const TcpSegment& s, Duration now) {
    return half.onData(s, half.before(s, back, 1s, at(now)), at(now));
  }
  TcpDirection::Ack receive(const TcpSegment& s, Duration now) {
    return half.onAck(s, {9}, 100'000, at(now));
  }

  TcpDirection half;
  TcpDirection back;  ///< of the data in the other direction
};

TEST_F(HalfTest, NewAgainAndNothing) {
  begin(100);
  EXPECT_EQ(send(data(100, 50), 1ms), TcpDirection::Data::kNew);
  EXPECT_EQ(send(data(150, 50), 1ms), TcpDirection::Data::kNew);
  EXPECT_EQ(send(data(100, 50), 2ms), TcpDirection::Data::kAgain);
  EXPECT_EQ(send(data(150, 60), 2ms), TcpDirection::Data::kNew);  // ten new bytes behind old ones
  EXPECT_EQ(half.nxt, Seq{210});
  receive(ack(200), 3ms);
  EXPECT_EQ(send(data(100, 50), 4ms), TcpDirection::Data::kNone);
  EXPECT_EQ(send(data(199, 1), 4ms), TcpDirection::Data::kNone);  // a keepalive with a byte
  EXPECT_EQ(send(data(210, 0), 4ms), TcpDirection::Data::kNone);
}

TEST_F(HalfTest, RttWithoutTimestampsIgnoresWhatWasSentTwice) {
  begin(100);
  send(data(100, 50), 0ms);
  receive(ack(150), 8ms);
  EXPECT_EQ(half.rtt.smoothed(), 8ms);
  send(data(150, 50), 10ms);
  send(data(150, 50), 20ms);
  receive(ack(200), 21ms);
  EXPECT_EQ(half.rtt.smoothed(), 8ms);
  send(data(200, 50), 30ms);
  receive(ack(250), 46ms);
  EXPECT_EQ(half.rtt.smoothed(), 9ms);  // 7/8 * 8 + 1/8 * 16
}

TEST_F(HalfTest, RttWithTimestampsKnowsWhichOneIsAcknowledged) {
  begin(100);
  send(data(100, 50, TcpTimestamps{40, 0}), 0ms);
  send(data(100, 50, TcpTimestamps{60, 0}), 20ms);
  receive(ack(150, TcpTimestamps{1, 40}), 22ms);  // the first copy arrived after all
  EXPECT_EQ(half.rtt.smoothed(), 22ms);
  send(data(150, 50, TcpTimestamps{70, 0}), 30ms);
  send(data(150, 50, TcpTimestamps{90, 0}), 50ms);
  receive(ack(200, TcpTimestamps{1, 90}),
          55ms);  // the second copy arrived; the time of the first is unknown
  EXPECT_EQ(half.rtt.smoothed(), 22ms);
}

TEST_F(HalfTest, DuplicatesAsInRfc5681) {
  begin(100);
  EXPECT_EQ(receive(ack(100), 1ms), TcpDirection::Ack::kNone);  // nothing outstanding
  send(data(100, 50), 1ms);
  EXPECT_EQ(receive(ack(100), 2ms), TcpDirection::Ack::kDuplicate);
  EXPECT_EQ(receive(ack(100), 2ms), TcpDirection::Ack::kDuplicate);
  EXPECT_EQ(half.dupAcks, 2);
  TcpSegment update = ack(100);
  update.window = 101;
  EXPECT_EQ(receive(update, 3ms), TcpDirection::Ack::kNone);
  TcpSegment keepalive = update;
  keepalive.seq = {8};
  EXPECT_EQ(receive(keepalive, 3ms), TcpDirection::Ack::kNone);
  TcpSegment withData = update;
  withData.length = 5;
  EXPECT_EQ(receive(withData, 3ms), TcpDirection::Ack::kNone);
  EXPECT_EQ(receive(ack(99), 3ms), TcpDirection::Ack::kNone);  // old
  EXPECT_EQ(half.dupAcks, 2);
  EXPECT_EQ(receive(ack(150), 4ms), TcpDirection::Ack::kNew);
  EXPECT_EQ(half.dupAcks, 0);
}

TEST_F(HalfTest, TheSequenceWraps) {
  begin(0xffffff00);
  send(data(0xffffff00, 0x200), 0ms);
  EXPECT_EQ(half.nxt, Seq{0x100});
  EXPECT_TRUE(half.isOutstanding());
  EXPECT_TRUE(half.mayAcknowledge({0x100}));
  EXPECT_FALSE(half.mayAcknowledge({0x101}));
  EXPECT_EQ(receive(ack(0x100), 1ms), TcpDirection::Ack::kNew);
  EXPECT_FALSE(half.isOutstanding());
}

TEST_F(HalfTest, LargeAtGammaSmallAgainAfterSilence) {
  begin(0xfffffff0);
  uint32_t seq = 0xfffffff0;
  send(data(seq, 99'999), 0ms);
  receive(ack(seq + 99'999), 1ms);
  EXPECT_FALSE(half.large);
  send(data(seq + 99'999, 1), 2ms);
  receive(ack(seq + 100'000), 3ms);
  EXPECT_TRUE(half.large);
  send(data(seq + 100'000, 10), 900ms);
  receive(ack(seq + 100'010), 901ms);
  EXPECT_TRUE(half.large);
  send(data(seq + 100'010, 10), 1900ms);  // a second after the last data
  EXPECT_FALSE(half.large);
}

// A burst is 1,000 bytes. The sequence numbers wrap in the fifth burst, and so do the marks of
// bursts.
TEST_F(HalfTest, BurstsBeginAcrossTheWrap) {
  uint32_t seq = 0xfffff000;
  begin(seq);
  for (int i = 0; i < 300; ++i, seq += 1000) {
    Duration now = i * 100ms;
    send(data(seq, 1000), now);
    EXPECT_EQ(half.base, Seq{seq}) << i;
    receive(ack(seq + 1000), now + 10ms);
    back.rtt.onSample(1ms);
    EXPECT_FALSE(half.large);
  }
}

// The answer must acknowledge data sent with or after the last missing data; up to 255 bytes of
// that are counted.
TEST_F(HalfTest, AnAnswerBeginsABurst) {
  for (uint32_t request : {1u, 200u, 3000u}) {
    half = TcpDirection{};
    begin(100);
    send(data(100, 50), 0ms);
    half.onSaid(request);  // before the ACK of all: not counted
    receive(ack(150), 2ms);
    half.onSaid(request);
    back.nxt = {9 + request};
    TcpSegment early = data(150, 50);
    early.ack = {9};
    EXPECT_FALSE(half.before(early, back, 1s, at(5ms)).begins) << request;
    TcpSegment answer = early;
    answer.ack = back.nxt;
    EXPECT_TRUE(half.before(answer, back, 1s, at(5ms)).begins) << request;
    send(early, 5ms);
    receive(ack(200), 7ms);
    answer.seq = {200};
    answer.end = {250};
    EXPECT_FALSE(half.before(answer, back, 1s, at(8ms)).begins) << "it is of what went on";
  }
}

// Algorithm 2 line 20 and Algorithm 1 lines 8-11, here with a loss that the sender's timer repairs
// late.
TEST_F(HalfTest, HardResetAfterInactivityAlsoWithDataOutstanding) {
  begin(100);
  send(data(100, 100'010), 0ms);
  receive(ack(100'100), 1ms);
  receive(ack(100'100), 2ms);
  EXPECT_TRUE(half.large);
  EXPECT_EQ(half.dupAcks, 1);
  send(data(100'100, 10), 999ms);
  EXPECT_TRUE(half.large);
  send(data(100'100, 10), 1999ms);
  EXPECT_FALSE(half.large);
  EXPECT_EQ(half.base, Seq{100'100});
  EXPECT_EQ(half.dupAcks, 0);
  EXPECT_EQ(half.ackAt - at(0ms), 1999ms);
  EXPECT_TRUE(half.isOutstanding());
}

// `expected` is 9 here: what the receiver of the data itself had sent before.
TEST_F(HalfTest, AnOldSegmentDoesNotChangeTheWindow) {
  begin(100);
  send(data(100, 50), 0ms);
  TcpSegment old = ack(100);
  old.window = 60'000;
  old.seq = old.end = {8};
  receive(old, 1ms);
  EXPECT_EQ(half.window, 100);
  old.ack = {99};
  old.seq = old.end = {9};
  receive(old, 1ms);
  EXPECT_EQ(half.window, 100);
  TcpSegment update = ack(100);
  update.window = 101;
  receive(update, 1ms);
  EXPECT_EQ(half.window, 101);
}

TEST_F(HalfTest, TheAckClockStartsWithAFlight) {
  begin(100);
  send(data(100, 50), 700ms);
  EXPECT_EQ(half.ackAt - at(0ms), 700ms);
  send(data(150, 50), 710ms);
  EXPECT_EQ(half.ackAt - at(0ms), 700ms);
}

TEST_F(HalfTest, WindowsBoundWhatFits) {
  begin(1'000'000);
  half.window = 10;
  half.shift = 7;  // 1280 bytes and the slack of 65536
  EXPECT_TRUE(half.mayCarry(data(1'000'000 + 66'000, 816)));
  EXPECT_FALSE(half.mayCarry(data(1'000'000 + 66'000, 817)));
  EXPECT_TRUE(half.mayCarry(data(1'000'000 - 66'816, 10)));
  EXPECT_FALSE(half.mayCarry(data(1'000'000 - 66'817, 10)));
  EXPECT_FALSE(half.mayAcknowledge({1'000'000 - 66'817}));
}

}  // namespace
}  // namespace braid::half_test
