#include "scheduler/shared_bottleneck.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace braid {
namespace {

constexpr Duration kT = DelayStatistics::kInterval;

/// Feeds whole intervals, one after another.
class Feed {
 public:
  explicit Feed(DelayStatistics& delays) : delays_(delays) {}
  /// Samples in milliseconds in the next interval, and its end.
  Feed& interval(std::initializer_list<double> ms) {
    Time now = begin_;
    for (double m : ms) delays_.onSample(fromSeconds(m / 1000), now += 1ms);
    return end();
  }
  /// The same so many times.
  Feed& intervals(size_t n, std::initializer_list<double> ms) {
    for (size_t i = 0; i < n; ++i) interval(ms);
    return *this;
  }
  Feed& packets(uint64_t acked, uint64_t lost) {
    delays_.onPackets(acked, lost, begin_);
    return end();
  }
  Feed& idle(size_t n) {
    for (size_t i = 0; i < n; ++i) end();
    return *this;
  }

 private:
  Feed& end() {
    delays_.advance(begin_ += kT);
    return *this;
  }
  DelayStatistics& delays_;
  Time begin_{};
};

struct Fed {
  DelayStatistics delays;
  Feed feed{delays};
  const DelayShape& shape() const { return delays.shape(); }
};

// ---- skewness (sections 3.2.1, 3.2.2, 4.1.1)

TEST(DelayStatistics, SkewIsTheShareBelowTheMeanLessTheShareAbove) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100});
  EXPECT_EQ(f.shape().skew, 0);  // there was no mean to compare with
  EXPECT_FALSE(f.shape().bottleneck);
  f.feed.interval({90, 90, 90, 90, 120});
  EXPECT_DOUBLE_EQ(f.shape().skew, 0.6);  // (4 - 1) / 5
}

TEST(DelayStatistics, SamplesAtTheMeanCountNeitherWay) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100}).interval({100, 100, 90, 90, 120});
  EXPECT_DOUBLE_EQ(f.shape().skew, 0.2);  // (2 - 1) / 5
}

TEST(DelayStatistics, TheMeanDelayIsThatOfTheIntervalsBefore) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100}).interval({200, 200, 200, 200, 200});
  f.feed.interval({140, 140, 140, 140, 160});  // against (100 + 200) / 2
  EXPECT_DOUBLE_EQ(f.shape().skew, (-5.0 + 3.0) / 10);
}

TEST(DelayStatistics, EveryIntervalHasTheSameShareInTheMeanDelay) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100, 100, 100, 100, 100, 100});
  f.feed.interval({200, 200, 200, 200, 200});  // mean_delay 150, not 133
  f.feed.interval({140, 140, 140, 140, 140});
  EXPECT_DOUBLE_EQ(f.shape().skew, 0);  // (-5 + 5) / 10
}

TEST(DelayStatistics, OldIntervalsCountLess) {
  Fed f;
  f.feed.intervals(31, {90, 90, 100, 110, 110}).interval({90, 90, 90, 90, 140});  // 0 and 3, mean 100
  constexpr double kAll = 5 * (20 * 11 + 55);  // samples by weight: 20 of 11, then 10 down to 1
  for (size_t age = 0; age < 20; ++age) {
    EXPECT_DOUBLE_EQ(f.shape().skew, 11 * 3 / kAll) << age;
    f.feed.interval({90, 90, 100, 110, 110});
  }
  for (size_t age = 20; age < 30; ++age) {
    EXPECT_DOUBLE_EQ(f.shape().skew, static_cast<double>(30 - age) * 3 / kAll) << age;
    f.feed.interval({90, 90, 100, 110, 110});
  }
  EXPECT_EQ(f.shape().skew, 0);
}

TEST(DelayStatistics, RoundingDoesNotSkew) {
  for (double ms : {33.333333, 17.1, 100.000001}) {
    Fed f;
    f.feed.intervals(100, {ms, ms, ms, ms, ms, ms, ms});
    EXPECT_EQ(f.shape().skew, 0) << ms;
    EXPECT_EQ(f.shape().variability, 0) << ms;
    EXPECT_EQ(f.shape().frequency, 0) << ms;
  }
}

// ---- which flows cross a bottleneck (section 3.3.1, step 1)

TEST(DelayStatistics, LittleSkewIsABottleneck) {
  Fed at, below;
  at.feed.interval({100, 100, 100, 100, 100, 100, 100, 100, 100, 100});
  at.feed.interval({95, 100, 100, 100, 100, 100, 100, 100, 100, 105});  // 0
  EXPECT_TRUE(at.shape().bottleneck);
  below.feed.interval({100, 100, 100, 100, 100, 100, 100, 100, 100, 100});
  below.feed.interval({95, 100, 100, 100, 100, 100, 100, 100, 100, 100});  // 0.1, not less
  EXPECT_FALSE(below.shape().bottleneck);
}

TEST(DelayStatistics, ABottleneckStaysOneUpToMoreSkew) {
  auto mild = {95.0, 95.0, 100.0, 100.0, 110.0};   // +1 of 5, mean 100
  auto strong = {90.0, 95.0, 95.0, 100.0, 120.0};  // +2 of 5, mean 100
  Fed fresh;
  fresh.feed.intervals(40, mild);
  EXPECT_DOUBLE_EQ(fresh.shape().skew, 0.2);
  EXPECT_FALSE(fresh.shape().bottleneck);
  Fed congested;
  congested.feed.interval(mild).interval({110, 110, 110, 110, 60}).intervals(40, mild);
  EXPECT_DOUBLE_EQ(congested.shape().skew, 0.2);
  EXPECT_TRUE(congested.shape().bottleneck);
  congested.feed.intervals(40, strong);
  EXPECT_DOUBLE_EQ(congested.shape().skew, 0.4);
  EXPECT_FALSE(congested.shape().bottleneck);
}

TEST(DelayStatistics, MuchLossIsABottleneck) {
  for (uint64_t lost : {10, 11}) {
    Fed f;
    f.feed.interval({100, 100, 100, 100, 100}).packets(100 - lost, lost);
    f.feed.interval({90, 90, 90, 90, 120});
    EXPECT_EQ(f.shape().bottleneck, lost > 10);
  }
}

// ---- loss (section 3.2.5)

TEST(DelayStatistics, LossIsTheShareOfTheLastN) {
  Fed f;
  f.feed.packets(90, 10);
  EXPECT_DOUBLE_EQ(f.shape().loss, 0.1);
  f.feed.packets(100, 0).idle(48);
  EXPECT_DOUBLE_EQ(f.shape().loss, 0.05);
  f.feed.idle(1);
  EXPECT_EQ(f.shape().loss, 0);
}

// ---- variability (sections 3.2.3, 4.1.2, 4.2)

TEST(DelayStatistics, VariabilityIsTheMeanDeviationFromTheLastIntervalsMean) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100});
  f.feed.interval({110, 110, 110, 110, 60});  // 80 ms in all; its mean is 100
  EXPECT_DOUBLE_EQ(f.shape().variability, 0.016);
  f.feed.interval({130, 130, 130, 130, 130});  // 150 ms
  EXPECT_DOUBLE_EQ(f.shape().variability, 0.023);
  f.feed.interval({130, 130, 130, 130, 130});  // none from 130
  EXPECT_DOUBLE_EQ(f.shape().variability, 0.230 / 15);
}

TEST(DelayStatistics, OldVariabilityCountsLess) {
  Fed f;
  f.feed.intervals(31, {100, 100, 100, 100, 100}).interval({90, 100, 100, 100, 110});  // 20 ms in all
  f.feed.intervals(25, {100, 100, 100, 100, 100});
  EXPECT_DOUBLE_EQ(f.shape().variability, 5 * 0.020 / (5 * 275));
}

TEST(DelayStatistics, OnlyIntervalsOfABottleneckVary) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100}).interval({90, 90, 90, 90, 140});  // skew 0.6
  EXPECT_EQ(f.shape().variability, 0);
  f.feed.interval({110, 110, 110, 110, 60});  // -3, with +3 before: 0
  EXPECT_TRUE(f.shape().bottleneck);
  EXPECT_DOUBLE_EQ(f.shape().variability, 0.016);  // the 80 ms of this one over its 5 samples
}

// ---- oscillation (sections 3.2.4, 4.2)

/// Two intervals up, two down.
void swing(Feed& feed, size_t times, double by, double noise = 0) {
  for (size_t i = 0; i < times; ++i) {
    double mean = 100 + (i % 4 < 2 ? by : -by);
    feed.interval({mean - noise, mean - noise, mean, mean + noise, mean + noise});
  }
}

TEST(DelayStatistics, FrequencyCountsSwingsThroughTheMean) {
  Fed f;
  swing(f.feed, 200, 10);  // deviations 0 and 20 ms by turns: 10; 10 > 0.7 * 10
  EXPECT_TRUE(f.shape().bottleneck);
  EXPECT_DOUBLE_EQ(f.shape().frequency, 0.5);
}

TEST(DelayStatistics, SwingsWithinTheNoiseDoNotCount) {
  Fed f;
  swing(f.feed, 200, 10, 50);  // deviation at least 40 ms: 10 < 0.7 * 40
  EXPECT_TRUE(f.shape().bottleneck);
  EXPECT_EQ(f.shape().frequency, 0);
}

TEST(DelayStatistics, TheFirstSideIsNoCrossing) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100}).intervals(3, {104, 104, 104, 104, 104});
  EXPECT_TRUE(f.shape().bottleneck);
  EXPECT_EQ(f.shape().frequency, 0);
  f.feed.interval({50, 50, 50, 50, 50});
  EXPECT_DOUBLE_EQ(f.shape().frequency, 1.0 / 5);
}

TEST(DelayStatistics, CrossingsCountAtABottleneckOnly) {
  Fed f;
  // Skew 0.2: seven just below the mean, three just above; means swing a little all the same.
  for (int i = 0; i < 100; ++i) {
    double by = i % 4 < 2 ? 0.5 : -0.5;
    f.feed.interval(
        {98 + by, 98 + by, 98 + by, 98 + by, 98 + by, 98 + by, 104 + by, 104 + by, 104 + by, 104 + by});
  }
  EXPECT_DOUBLE_EQ(f.shape().skew, 0.2);
  EXPECT_FALSE(f.shape().bottleneck);
  EXPECT_EQ(f.shape().frequency, 0);
}

// ---- few samples and none

TEST(DelayStatistics, AnIntervalWithFewSamplesMeasuresNothing) {
  Fed f;
  f.feed.interval({100, 100, 100, 100, 100}).interval({500, 500, 500, 500});
  EXPECT_EQ(f.shape().skew, 0);
  f.feed.interval({90, 90, 90, 90, 140});  // against 100
  EXPECT_DOUBLE_EQ(f.shape().skew, 0.6);
}

TEST(DelayStatistics, ReadyAfterTwoTimesM) {
  Fed f;
  f.feed.intervals(59, {100, 100, 100, 100, 100});
  EXPECT_FALSE(f.delays.ready());
  f.feed.interval({100, 100, 100, 100, 100});
  EXPECT_TRUE(f.delays.ready());
}

TEST(DelayStatistics, NotReadyWhileIdle) {
  Fed f;
  f.feed.intervals(60, {100, 100, 100, 100, 100}).idle(5);
  EXPECT_TRUE(f.delays.ready());
  f.feed.idle(1);
  EXPECT_FALSE(f.delays.ready());
  f.feed.interval({100, 100, 100, 100, 100});
  EXPECT_TRUE(f.delays.ready());
}

TEST(DelayStatistics, NotReadyWithFewIntervalsOfTheLastN) {
  Fed f;
  f.feed.intervals(60, {100, 100, 100, 100, 100}).idle(20).interval({100, 100, 100, 100, 100});
  EXPECT_TRUE(f.delays.ready());  // 30 of 50
  f.feed.idle(30).intervals(29, {100, 100, 100, 100, 100});
  EXPECT_FALSE(f.delays.ready());
  f.feed.interval({100, 100, 100, 100, 100});
  EXPECT_TRUE(f.delays.ready());
}

TEST(DelayStatistics, ForgetsAfterALongPause) {
  for (int pause : {49, 60, 1000000}) {
    DelayStatistics d;
    Feed(d).intervals(60, {100, 100, 100, 100, 110});
    Time later = Time{} + (60 + pause) * kT;
    d.advance(later);
    for (int i = 0; i < 5; ++i) d.onSample(50ms, later);
    d.advance(later + kT);
    EXPECT_FALSE(d.ready()) << pause;
    EXPECT_EQ(d.shape().skew, 0) << pause;  // there is no mean to compare with
  }
}

TEST(DelayStatistics, IntervalsBeginTogether) {
  DelayStatistics d;
  d.advance(Time{} + 1000s + 100ms);  // the next boundary: 2858 * 350 ms = 1000.3 s
  for (int i = 0; i < 5; ++i) d.onSample(100ms, Time{} + 1000s + 299ms);
  for (int i = 0; i < 5; ++i) d.onSample(90ms, Time{} + 1000s + 300ms);
  d.advance(Time{} + 1000s + 649ms);
  EXPECT_EQ(d.shape().skew, 0);
  d.advance(Time{} + 1000s + 650ms);
  EXPECT_EQ(d.shape().skew, 1);
}

// ---- correlation

/// `n` intervals with means of 100 ms and up to `by` ms more or less, by a pattern of signs.
void pattern(Feed& feed, size_t n, const char* signs, double by) {
  for (size_t i = 0, length = std::string_view(signs).size(); i < n; ++i) {
    double mean = 100 + (signs[i % length] == '+' ? by : -by);
    feed.interval({mean, mean, mean, mean, mean});
  }
}

TEST(DelayStatistics, CorrelationOfDelaysThatGoUpAndDown) {
  Fed a, same, opposite, other;
  pattern(a.feed, 100, "+-", 10);
  pattern(same.feed, 100, "+-", 30);
  pattern(opposite.feed, 100, "-+", 10);
  pattern(other.feed, 100, "++--", 10);
  EXPECT_DOUBLE_EQ(correlation(a.delays, same.delays), 1);
  EXPECT_DOUBLE_EQ(correlation(a.delays, opposite.delays), -1);
  EXPECT_NEAR(correlation(a.delays, other.delays), 0, 1e-9);
}

TEST(DelayStatistics, CorrelationOfAPart) {
  Fed a, b;
  pattern(a.feed, 100, "++++----", 10);
  pattern(b.feed, 100, "+++-----", 10);  // 7 of 8 alike
  // The newest 50 begin at the third of a period: a has 26 ups, b 19, and they differ in 7.
  double cov = 50 * 36 - 2 * -12, varA = 2500 - 4, varB = 2500 - 144;
  EXPECT_NEAR(correlation(a.delays, b.delays), cov / std::sqrt(varA * varB), 1e-9);
}

TEST(DelayStatistics, NoCorrelationOfTooFew) {
  Fed a, b, c;
  pattern(a.feed, 100, "+-", 10);
  pattern(b.feed, 71, "+-", 10);
  b.feed.idle(29);  // 21 in common
  EXPECT_EQ(correlation(a.delays, b.delays), 0);
  pattern(c.feed, 80, "+-", 10);
  c.feed.idle(20);  // 30 in common
  EXPECT_DOUBLE_EQ(correlation(a.delays, c.delays), 1);
  Fed flat;
  flat.feed.intervals(100, {100, 100, 100, 100, 100});
  EXPECT_EQ(correlation(a.delays, flat.delays), 0);
}

// ---- dividing by shape (section 3.3.1, steps 2 to 5)

/// The groups of flows of these shapes, as letters in their order.
std::string divided(std::vector<DelayShape> shapes) {
  std::vector<BottleneckUser> users(shapes.size());
  std::vector<BottleneckUser*> pointers;
  for (size_t i = 0; i < shapes.size(); ++i) {
    users[i].shape = shapes[i];
    pointers.push_back(&users[i]);
  }
  BottleneckGrouping().divide(pointers);
  std::string result;
  for (const BottleneckUser& u : users) {
    size_t first = 0;
    while (users[first].alike != u.alike) ++first;
    result += static_cast<char>('a' + first);
  }
  return result;
}

TEST(BottleneckGrouping, DividesByFrequency) {
  auto f = [](double x) { return DelayShape{true, 0, 0.01, x, 0}; };
  EXPECT_EQ(divided({f(0.25), f(0.34)}), "aa");
  EXPECT_EQ(divided({f(0.25), f(0.3500001)}), "ab");
  EXPECT_EQ(divided({f(0.2), f(0.5), f(0.29)}), "aba");
}

TEST(BottleneckGrouping, NeighboursHoldAGroupTogether) {
  auto f = [](double x) { return DelayShape{true, 0, 0.01, x, 0}; };
  EXPECT_EQ(divided({f(0.1), f(0.28), f(0.19)}), "aaa");  // sorted, no gap of 0.1
}

TEST(BottleneckGrouping, DividesByVariabilityRelativeToTheHigher) {
  auto v = [](double x) { return DelayShape{true, 0, x, 0, 0}; };
  EXPECT_EQ(divided({v(0.0091), v(0.0100)}), "aa");  // 0.0009 < 0.0010
  EXPECT_EQ(divided({v(0.0089), v(0.0100)}), "ab");
  EXPECT_EQ(divided({v(0), v(0)}), "ab");  // nothing varies: nothing in common
}

TEST(BottleneckGrouping, DividesBySkew) {
  auto s = [](double x) { return DelayShape{true, x, 0.01, 0, 0}; };
  EXPECT_EQ(divided({s(-0.1), s(0.04)}), "aa");
  EXPECT_EQ(divided({s(-0.1), s(0.06)}), "ab");
}

TEST(BottleneckGrouping, DividesByHighLossOnly) {
  auto l = [](double x) { return DelayShape{true, 0, 0.01, 0, x}; };
  EXPECT_EQ(divided({l(0.01), l(0.09)}), "aa");
  EXPECT_EQ(divided({l(0.182), l(0.2)}), "aa");
  EXPECT_EQ(divided({l(0.178), l(0.2)}), "ab");
  EXPECT_EQ(divided({l(0.05), l(0.11)}), "ab");
}

TEST(BottleneckGrouping, DividesInTurn) {
  // By frequency {0, 1, 2 | 3}; by variability {0, 1 | 2}; by skew {0 | 1}.
  EXPECT_EQ(divided({{true, -0.2, 0.010, 0.3, 0},
                     {true, 0.05, 0.010, 0.3, 0},
                     {true, -0.2, 0.020, 0.3, 0},
                     {true, -0.2, 0.010, 0.5, 0}}),
            "abcd");
  EXPECT_EQ(divided({}), "");
}

// ---- grouping

struct Users {
  explicit Users(size_t n) : users(n) {
    for (BottleneckUser& u : users) feeds.emplace_back(u.delays);
  }
  void group() {
    std::vector<BottleneckUser*> pointers;
    for (BottleneckUser& u : users) pointers.push_back(&u);
    grouping.group(pointers);
  }
  std::vector<size_t> sharing() const {
    std::vector<size_t> result;
    for (const BottleneckUser& u : users) result.push_back(u.sharing);
    return result;
  }
  using Counts = std::vector<size_t>;
  std::vector<BottleneckUser> users;
  std::vector<Feed> feeds;
  BottleneckGrouping grouping;
};

TEST(BottleneckGrouping, AlikeAndInStep) {
  Users u(3);
  pattern(u.feeds[0], 100, "++--", 10);
  pattern(u.feeds[1], 100, "++--", 10);
  pattern(u.feeds[2], 100, "+--+", 10);  // of the same shape, but half a swing later
  u.group();
  EXPECT_EQ(u.users[0].alike, u.users[2].alike);
  EXPECT_EQ(u.sharing(), (Users::Counts{2, 2, 1}));
  EXPECT_EQ(u.users[0].bottleneck, u.users[1].bottleneck);
  EXPECT_NE(u.users[0].bottleneck, u.users[2].bottleneck);
}

TEST(BottleneckGrouping, InStepButNotAlike) {
  Users u(2);
  pattern(u.feeds[0], 100, "++--", 10);
  pattern(u.feeds[1], 100, "++--", 20);  // twice the variability
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{1, 1}));
}

TEST(BottleneckGrouping, TogetherTheyStayWhileInStep) {
  Users u(2);
  for (Feed& f : u.feeds) pattern(f, 100, "++--", 10);
  u.group();
  ASSERT_EQ(u.sharing(), (Users::Counts{2, 2}));
  pattern(u.feeds[0], 100, "++--", 10);
  pattern(u.feeds[1], 100, "++--", 20);
  u.group();
  EXPECT_NE(u.users[0].alike, u.users[1].alike);
  EXPECT_EQ(u.sharing(), (Users::Counts{2, 2}));
  pattern(u.feeds[0], 100, "++--", 10);
  pattern(u.feeds[1], 100, "+--+", 10);
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{1, 1}));
}

TEST(BottleneckGrouping, NobodySharesWithTheIdle) {
  Users u(2);
  for (Feed& f : u.feeds) pattern(f, 100, "++--", 10);
  u.group();
  ASSERT_EQ(u.sharing(), (Users::Counts{2, 2}));
  pattern(u.feeds[0], 6, "++--", 10);
  u.feeds[1].idle(6);
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{1, 1}));
}

TEST(BottleneckGrouping, NobodySharesBeforeTheWarmUp) {
  Users u(2);
  for (Feed& f : u.feeds) pattern(f, 59, "++--", 10);
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{1, 1}));
  for (Feed& f : u.feeds) pattern(f, 1, "-", 10);
  u.group();
  EXPECT_EQ(u.sharing(), (Users::Counts{2, 2}));
}

TEST(BottleneckGrouping, WithoutABottleneckTheyAreAlone) {
  Users u(2);
  for (Feed& f : u.feeds) {
    for (int i = 0; i < 100; ++i) {
      double by = i % 4 < 2 ? 0.5 : -0.5;  // the swings are in step, the skew is 0.6
      f.interval({99 + by, 99 + by, 99 + by, 99 + by, 104 + by});
    }
  }
  u.group();
  EXPECT_DOUBLE_EQ(correlation(u.users[0].delays, u.users[1].delays), 1);
  EXPECT_EQ(u.sharing(), (Users::Counts{1, 1}));
}

}  // namespace
}  // namespace braid
