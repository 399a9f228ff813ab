#include "scheduler/rate/controller_group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace braid::shared_bottleneck_test {
namespace {

constexpr Duration kT = DelaySeries::kInterval;

/// Feeds whole intervals, one after another.
class Feed {
 public:
  explicit Feed(DelaySeries& delays) : delays_(delays) {}
  /// Samples in milliseconds in the next interval, and its end.
  Feed& interval(std::initializer_list<double> ms) {
    Time now = begin_;
    for (double m : ms) delays_.onSample(fromSeconds(m / 1000), now += 1ms);
    return idle(1);
  }
  /// `n` intervals with means of 100 ms and `by` ms more or less, by a pattern of signs.
  Feed& swing(size_t n, std::string_view signs, double by = 10) {
    for (size_t i = 0; i < n; ++i) {
      double mean = signs[i % signs.size()] == '+' ? 100 + by : 100 - by;
      interval({mean - 1, mean - 1, mean, mean + 1, mean + 1});
    }
    return *this;
  }
  Feed& idle(size_t n) {
    for (size_t i = 0; i < n; ++i) delays_.advance(begin_ += kT);
    return *this;
  }

 private:
  DelaySeries& delays_;
  Time begin_{};
};

struct Fed {
  DelaySeries delays;
  Feed feed{delays};
};

// ---- correlation

TEST(DelaySeries, CorrelationOfDelaysThatGoUpAndDown) {
  Fed a, same, opposite, other;
  a.feed.swing(50, "+-");
  same.feed.swing(50, "+-", 30);
  opposite.feed.swing(50, "-+");
  other.feed.swing(50, "++--");
  EXPECT_DOUBLE_EQ(correlation(a.delays, same.delays), 1);
  EXPECT_DOUBLE_EQ(correlation(a.delays, opposite.delays), -1);
  EXPECT_NEAR(correlation(a.delays, other.delays), 0, 1e-9);
}

TEST(DelaySeries, CorrelationOfAPart) {
  Fed a, b;
  a.feed.swing(50, "++++----");
  b.feed.swing(50, "+++-----");
  // a: 26 ups; b: 20; they differ in 6. Sums of signs: 2, -10; of products: 44 - 6.
  double cov = 50 * 38 - 2 * -10, varA = 2500 - 4, varB = 2500 - 100;
  EXPECT_NEAR(correlation(a.delays, b.delays), cov / std::sqrt(varA * varB), 1e-9);
}

TEST(DelaySeries, CorrelationOfTheLastIntervalsOnly) {
  Fed a, b;
  a.feed.swing(100, "+-");
  b.feed.swing(50, "-+").swing(50, "+-");
  EXPECT_DOUBLE_EQ(correlation(a.delays, b.delays), 1);
}

TEST(DelaySeries, TheMeanOfAnIntervalCounts) {
  Fed a, b;
  a.feed.swing(50, "+-");
  for (int i = 0; i < 25; ++i) {
    b.feed.interval({50, 50, 50, 50, 350});  // 110 ms
    b.feed.interval({90, 90, 90, 90, 90, 90, 90, 90, 90, 90});
  }
  EXPECT_DOUBLE_EQ(correlation(a.delays, b.delays), 1);
}

TEST(DelaySeries, OnlyIntervalsThatBothMeasuredCount) {
  Fed a, b;
  a.feed.swing(20, "-+").swing(30, "+-");
  b.feed.idle(20).swing(30, "+-");
  EXPECT_DOUBLE_EQ(correlation(a.delays, b.delays), 1);
}

TEST(DelaySeries, TooFewInCommonSayNothing) {
  Fed a, b;
  a.feed.swing(50, "+-");
  b.feed.idle(21).swing(29, "-+");
  EXPECT_EQ(correlation(a.delays, b.delays), 0);
}

TEST(DelaySeries, WhatDoesNotMoveSaysNothing) {
  Fed a, b;
  a.feed.swing(50, "+-");
  b.feed.swing(50, "+");
  EXPECT_EQ(correlation(a.delays, b.delays), 0);
  EXPECT_EQ(correlation(b.delays, b.delays), 0);
}

TEST(DelaySeries, AnIntervalWithFewSamplesMeasuresNothing) {
  Fed a, b;
  a.feed.swing(50, "+-");
  b.feed.swing(20, "+-");
  for (int i = 0; i < 20; ++i) b.feed.interval({500, 10, 500, 10});
  b.feed.swing(10, "+-");
  EXPECT_DOUBLE_EQ(correlation(a.delays, b.delays), 1);
}

TEST(DelaySeries, IntervalsBeginTogether) {
  DelaySeries a, b;
  a.advance(Time{} + 1000s);
  b.advance(Time{} + 1000s + 250ms);
  Time begin = Time{} + 1000s + 300ms;  // 2858 * 350 ms
  for (int i = 0; i < 50; ++i, begin += kT) {
    for (int k = 0; k < 5; ++k) a.onSample(i % 2 ? 100ms : 200ms, begin);
    for (int k = 0; k < 5; ++k) b.onSample(i % 2 ? 100ms : 200ms, begin + kT - 1ns);
  }
  a.advance(begin);
  b.advance(begin);
  EXPECT_DOUBLE_EQ(correlation(a, b), 1);
}

// ---- when there is enough

TEST(DelaySeries, ReadyAfterTheWarmUp) {
  Fed f;
  f.feed.swing(59, "+-");
  EXPECT_FALSE(f.delays.ready());
  f.feed.swing(1, "+");
  EXPECT_TRUE(f.delays.ready());
}

TEST(DelaySeries, NotReadyWhileIdle) {
  Fed f;
  f.feed.swing(60, "+-").idle(5);
  EXPECT_TRUE(f.delays.ready());
  f.feed.idle(1);
  EXPECT_FALSE(f.delays.ready());
  f.feed.swing(1, "+");
  EXPECT_TRUE(f.delays.ready());
}

TEST(DelaySeries, ForgetsAfterALongPause) {
  for (int pause : {60, 1000000}) {
    DelaySeries d;
    Feed(d).swing(60, "+-");
    Time later = Time{} + (60 + pause) * kT;
    for (int i = 0; i < 5; ++i) d.onSample(100ms, later);
    d.advance(later + kT);
    EXPECT_FALSE(d.ready()) << pause;
  }
}

// ---- grouping

struct Users {
  explicit Users(size_t n) : users(n) {
    for (BottleneckUser& u : users) feeds.emplace_back(u.delays);
  }
  void group() {
    std::vector<BottleneckUser*> pointers;
    for (BottleneckUser& u : users) pointers.push_back(&u);
    groupByBottleneck(pointers);
  }
  std::vector<size_t> sharing() const {
    std::vector<size_t> result;
    for (const BottleneckUser& u : users) result.push_back(u.sharing);
    return result;
  }
  using Counts = std::vector<size_t>;
  std::vector<BottleneckUser> users;
  std::vector<Feed> feeds;
};

TEST(BottleneckGrouping, WhoGoesUpAndDownTogetherShares) {
  Users u(5);
  u.feeds[0].swing(60, "++--");
  u.feeds[1].swing(60, "+--+");
  u.feeds[2].swing(60, "++--", 5);
  u.feeds[3].swing(60, "+--+");
  u.feeds[4].swing(60, "++--", 20);
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{3, 2, 3, 2, 3}));
  EXPECT_EQ(u.users[0].bottleneck, u.users[2].bottleneck);
  EXPECT_NE(u.users[0].bottleneck, u.users[1].bottleneck);
}

TEST(BottleneckGrouping, NobodySharesBeforeTheWarmUp) {
  Users u(2);
  for (Feed& f : u.feeds) f.swing(59, "++--");
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{1, 1}));
  for (Feed& f : u.feeds) f.swing(1, "-");
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{2, 2}));
}

TEST(BottleneckGrouping, NobodySharesWithTheIdle) {
  Users u(2);
  for (Feed& f : u.feeds) f.swing(60, "++--");
  u.group();
  ASSERT_EQ(u.sharing(), (Users::Counts{2, 2}));
  u.feeds[0].swing(6, "++--");
  u.feeds[1].idle(6);
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{1, 1}));
}

/// Feeds 50 intervals that alternate "+-". In the first `apart` of them the second feed has the
/// opposite sign. For an even `apart` the correlation coefficient is 1 - 2 * apart / 50.
void mostlyTogether(Users& u, size_t apart) {
  u.feeds[0].swing(50, "+-");
  u.feeds[1].swing(apart, "-+").swing(50 - apart, "+-");
}

TEST(BottleneckGrouping, TogetherFromAHighCorrelation) {
  for (size_t apart : {2, 4}) {  // 0.92, 0.84
    Users u(2);
    for (Feed& f : u.feeds) f.swing(10, "+");
    mostlyTogether(u, apart);
    u.group();
    EXPECT_EQ(u.sharing()[0], apart == 2 ? 2u : 1u) << apart;
  }
}

TEST(BottleneckGrouping, AndUntilALowerOne) {
  for (size_t apart : {6, 8}) {  // 0.76, 0.68
    Users u(2);
    for (Feed& f : u.feeds) f.swing(60, "+-");
    u.group();
    ASSERT_EQ(u.sharing(), (Users::Counts{2, 2}));
    mostlyTogether(u, apart);
    u.group();
    EXPECT_EQ(u.sharing()[0], apart == 6 ? 2u : 1u) << apart;
  }
}

}  // namespace
}  // namespace braid::shared_bottleneck_test
