#include "tunnel/queue/codel.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <vector>

namespace braid::codel_test {
namespace {

constexpr Time at(Duration d) {
  return Time{} + d;
}
constexpr size_t kBytes = 1000;

/// Packets are their enqueue times; each has kBytes.
struct Fake {
  std::deque<Time> queue;
  Time now;
  std::optional<Time> hand;
  bool canMark = false;
  std::vector<Time> dropped;
  std::vector<Time> marked;

  bool pull() {
    hand.reset();
    if (queue.empty()) return false;
    hand = queue.front();
    queue.pop_front();
    return true;
  }
  Duration sojourn() const { return now - *hand; }
  size_t bytes() const { return queue.size() * kBytes; }
  bool mark() {
    if (canMark) marked.push_back(now);
    return canMark;
  }
  void drop() { dropped.push_back(now); }
};

struct Bench {
  CodelOptions options;
  Codel codel;
  Fake fake;

  void fill(size_t n, Time t) { fake.queue.insert(fake.queue.end(), n, t); }
  bool dequeue(Time now) {
    fake.now = now;
    return codel.dequeue(fake, options, now);
  }
  /// One packet every millisecond.
  void run(Duration from, Duration to) {
    for (Duration t = from; t <= to; t += 1ms) dequeue(at(t));
  }
};

std::vector<Time> times(std::initializer_list<Duration> list) {
  std::vector<Time> out;
  for (Duration d : list) out.push_back(at(d));
  return out;
}

TEST(Codel, EmptyQueueGivesNothing) {
  Bench b;
  EXPECT_FALSE(b.dequeue(at(1s)));
}

TEST(Codel, ShortDelayIsLeftAlone) {
  Bench b;
  for (Duration t = 0ms; t < 1s; t += 1ms) {
    b.fill(1, at(t));
    if (t < 4ms) continue;
    EXPECT_TRUE(b.dequeue(at(t)));  // queued for 4 ms: below target
  }
  EXPECT_TRUE(b.fake.dropped.empty());
}

TEST(Codel, ControlLawByHand) {
  Bench b;
  b.fill(2000, at(0ms));
  b.run(0ms, 400ms);
  // Above target from 5 ms on, standing since an interval at 105; then + 100, 100/sqrt(2),
  // 100/sqrt(3), 100/sqrt(4): 205, 275.7, 333.4, 383.4; the next at 428.2.
  EXPECT_EQ(b.fake.dropped, times({105ms, 205ms, 276ms, 334ms, 384ms}));
  EXPECT_EQ(b.codel.count(), 5u);
  EXPECT_NEAR(toMilliseconds(b.codel.dropNext() - at(0ms)), 428.167, 0.01);
}

TEST(Codel, SeveralDropsInOneDequeue) {
  Bench b;
  b.fill(2000, at(0ms));
  b.run(0ms, 105ms);
  ASSERT_EQ(b.fake.dropped.size(), 1u);
  EXPECT_TRUE(b.dequeue(at(400ms)));
  EXPECT_EQ(b.fake.dropped.size(), 5u) << "those of 205, 275.7, 333.4 and 383.4";
  EXPECT_EQ(b.codel.count(), 5u);
}

TEST(Codel, MaxPacketIsNoStandingQueue) {
  for (size_t maxPacket : {size_t{1000}, size_t{999}}) {
    Bench b;
    b.options.maxPacket = maxPacket;
    b.fill(1, at(0ms));
    for (Duration t = 10ms; t < 1s; t += 10ms) {
      b.fill(1, at(t));
      b.dequeue(at(t));  // queued for 10 ms or more, and 1000 bytes are left in the queue
    }
    EXPECT_EQ(b.fake.dropped.empty(), maxPacket == 1000);
  }
}

TEST(Codel, OneGoodSojournResetsTheInterval) {
  Bench b;
  b.fill(50, at(0ms));
  b.run(0ms, 49ms);
  b.fill(1000, at(100ms));
  b.run(104ms, 104ms);  // 4 ms: below target
  b.run(106ms, 205ms);
  EXPECT_TRUE(b.fake.dropped.empty());
  b.run(206ms, 206ms);
  EXPECT_EQ(b.fake.dropped, times({206ms}));
}

TEST(Codel, LeavesWhenTheDelayIsGone) {
  Bench b;
  b.fill(300, at(0ms));
  b.run(0ms, 280ms);
  ASSERT_EQ(b.codel.count(), 3u);
  ASSERT_TRUE(b.codel.dropping());
  b.fake.queue.clear();
  b.fill(10, at(299ms));
  EXPECT_TRUE(b.dequeue(at(300ms)));
  EXPECT_FALSE(b.codel.dropping());
  EXPECT_FALSE(b.fake.dropped.size() > 3);
}

TEST(Codel, LeavesWhenADropEmptiesTheQueue) {
  Bench b;
  b.options.maxPacket = 0;
  b.fill(107, at(0ms));
  b.run(0ms, 105ms);  // 106 dequeued, of which... one more was taken after the drop
  ASSERT_TRUE(b.codel.dropping());
  ASSERT_TRUE(b.fake.queue.empty());
  EXPECT_FALSE(b.dequeue(at(106ms)));
  EXPECT_FALSE(b.codel.dropping());
}

/// Drops five times, as in ControlLawByHand, and leaves the dropping state.
void dropFiveTimes(Bench& b) {
  b.fill(2000, at(0ms));
  b.run(0ms, 400ms);
  ASSERT_EQ(b.codel.count(), 5u);
  b.fake.queue.clear();
  b.fake.dropped.clear();
  EXPECT_FALSE(b.dequeue(at(401ms)));
  ASSERT_FALSE(b.codel.dropping());
}

TEST(Codel, RecentDropRateIsReused) {
  Bench b;
  dropFiveTimes(b);
  b.fill(2000, at(500ms));
  b.run(505ms, 605ms);
  // 605 - 428 ms is below 16 intervals: count = 5 - 1 = 4, the next after 100/sqrt(4).
  EXPECT_EQ(b.fake.dropped, times({605ms}));
  EXPECT_EQ(b.codel.count(), 4u);
  EXPECT_EQ(b.codel.dropNext(), at(655ms));
  // Again without a drop in between: 4 - 4 = 0, so count begins with 1.
  b.fake.queue.clear();
  b.dequeue(at(606ms));
  b.fill(2000, at(700ms));
  b.run(705ms, 805ms);
  EXPECT_EQ(b.codel.count(), 1u);
}

TEST(Codel, OldDropRateIsForgotten) {
  for (bool recent : {true, false}) {
    Bench b;
    dropFiveTimes(b);
    // dropNext is 428.17 ms: 16 intervals later is 2028.17 ms.
    Duration enter = recent ? 2028ms : 2029ms;
    b.fill(2000, at(enter - 105ms));
    b.run(enter - 100ms, enter);
    EXPECT_EQ(b.fake.dropped.size(), 1u);
    EXPECT_EQ(b.codel.count(), recent ? 4u : 1u);
  }
}

TEST(Codel, MarksInsteadOfDropping) {
  Bench b;
  b.fake.canMark = true;
  b.fill(2000, at(0ms));
  for (Duration t = 0ms; t <= 400ms; t += 1ms) ASSERT_TRUE(b.dequeue(at(t)));
  EXPECT_EQ(b.fake.marked, times({105ms, 205ms, 276ms, 334ms, 384ms}));
  EXPECT_TRUE(b.fake.dropped.empty());
  EXPECT_EQ(b.fake.queue.size(), 2000u - 401u);
}

TEST(Codel, OptionsCount) {
  Bench b;
  b.options.target = 20ms;
  b.options.interval = 40ms;
  b.fill(2000, at(0ms));
  b.run(0ms, 100ms);
  EXPECT_EQ(b.fake.dropped, times({60ms, 100ms}));
}

}  // namespace
}  // namespace braid::codel_test
