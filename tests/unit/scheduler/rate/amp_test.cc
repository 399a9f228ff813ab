#include "scheduler/rate/amp.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::amp_test {
namespace {

TEST(Amp, AMarkTakesOneQuarter) {
  Amp amp(kBytes, 10, {});
  amp.onMarks(5, at(1s), at(1100ms));
  EXPECT_EQ(amp.window(), 7500u);
}

TEST(Amp, OneCutPerWindow) {
  Amp amp(kBytes, 10, {});
  amp.onMarks(1, at(1s), at(1100ms));
  amp.onMarks(1, at(1050ms), at(1150ms));
  EXPECT_EQ(amp.window(), 7500u);
  amp.onMarks(1, at(1100ms), at(1200ms));
  EXPECT_EQ(amp.window(), 5625u);
}

TEST(Amp, BetaIsASetting) {
  Amp amp(kBytes, 10, {.beta = 2});
  amp.onMarks(1, at(1s), at(1100ms));
  EXPECT_EQ(amp.window(), 5000u);
}

TEST(Amp, BetaFromBdpAndThreshold) {
  EXPECT_DOUBLE_EQ(ampBeta(20, 10), 3);  // section 4.2: 1 Gbit/s, 250 us, K = 10
  EXPECT_DOUBLE_EQ(ampBeta(30, 10), 4);
  EXPECT_DOUBLE_EQ(ampBeta(5, 10), 2) << "not more than a standard TCP";
}

TEST(Amp, ALossHalves) {
  Amp amp(kBytes, 10, {});
  amp.onLoss(lossOf(1, at(1s), at(1100ms)));
  EXPECT_EQ(amp.window(), 5000u);
}

TEST(Amp, CwndMin) {
  Amp two(kBytes, 10, {}), one(kBytes, 10, {.minimumWindow = 1});
  squeeze(two);
  squeeze(one);
  EXPECT_EQ(two.window(), 2000u);
  EXPECT_EQ(one.window(), 1000u);
  two.onLoss(lossOf(1, at(9s), at(9100ms)));
  EXPECT_EQ(two.window(), 2000u);
}

struct AmpGroup : testing::Test {
  ControllerGroup group;
  AmpOptions options;
  std::vector<std::unique_ptr<Amp>> subflows;

  void make(size_t n, size_t initial = 10) {
    for (size_t i = 0; i < n; ++i) {
      subflows.push_back(std::make_unique<Amp>(kBytes, initial, options, &group));
      subflows.back()->setUsable(true, at(0s));
    }
  }
  Amp& operator[](size_t i) { return *subflows[i]; }
  bool suppressed(size_t i) { return subflows[i]->suppressedAt() != kNever; }
  /// Brings all subflows to the minimum window. Rounds begin at `now`.
  Time now = at(1s);
  void squeezeAll() {
    for (auto& s : subflows) now = squeeze(*s, at(1s));
    beginRounds();
  }
  void beginRounds() { subflows[0]->onAck(ackOf(*subflows[0], 10, now - 100ms)); }
  /// Marks subflows in `rounds` rounds, which their windows outlive; each time those for which
  /// `marked(round, subflow)` is true.
  template <typename Marked>
  void mark(int rounds, Marked marked) {
    for (int round = 0; round < rounds; ++round, now += 100ms) {
      for (size_t i = 0; i < subflows.size(); ++i)
        ackMarked(*subflows[i], 10, marked(round, i), now);
    }
  }
  /// By how much an acknowledged datagram grows the window.
  double growth(Amp& subflow) {
    auto before = static_cast<double>(subflow.window());
    subflow.onAck(ackOf(subflow, kBytes, now));
    return static_cast<double>(subflow.window()) - before;
  }
  /// Lets one window of the initial subflow pass.
  void round(uint64_t marks = 1) {
    ackMarked(*subflows[0], 10, marks, now);
    now += 100ms;
  }
};

TEST_F(AmpGroup, SubflowsThatShareMarksGrowTogetherByOneDatagramARound) {
  options.beta = 1e9;
  make(4);
  mark(MarkHistory::kLeast + 1, [](int, size_t) { return true; });
  double total = group.totalWindow();
  ASSERT_GT(total, 39000);
  EXPECT_NEAR(growth((*this)[0]), 1e6 / total, 1);
  EXPECT_NEAR(growth((*this)[3]), 1e6 / total, 1);
}

TEST_F(AmpGroup, SubflowsThatAreMarkedAtDifferentTimesGrowEachForItself) {
  options.beta = 1e9;
  make(2);
  mark(4 * MarkHistory::kLeast,
       [](int round, size_t i) { return round % 2 == static_cast<int>(i); });
  EXPECT_NEAR(growth((*this)[0]), 1e6 / static_cast<double>((*this)[0].window()), 2);
}

TEST_F(AmpGroup, BeforeTheyWereMarkedOftenSubflowsGrowEachForItself) {
  options.beta = 1e9;
  make(2);
  mark(MarkHistory::kLeast - 1, [](int, size_t) { return true; });
  EXPECT_NEAR(growth((*this)[0]), 1e6 / static_cast<double>((*this)[0].window()), 2);
}

TEST_F(AmpGroup, ANewPathSharesNoMarks) {
  options.beta = 1e9;
  make(2);
  mark(MarkHistory::kLeast + 1, [](int, size_t) { return true; });
  (*this)[1].reset(now);
  EXPECT_NEAR(growth((*this)[0]), 1e6 / static_cast<double>((*this)[0].window()), 2);
}

TEST_F(AmpGroup, TheRttIsOfNoConcern) {
  make(2);
  for (size_t i : {0, 1}) (*this)[i].onMarks(1, at(1s), at(1100ms));
  (*this)[1].onAck(ackOf((*this)[1], 1000, at(1200ms), 900ms));
  EXPECT_EQ((*this)[1].window(), 7633u);  // 7500 + 1000 * 1000 / 7500
}

TEST_F(AmpGroup, SuppressesAllButTheInitialAfterGammaRoundsAtTheMinimum) {
  make(3);
  squeezeAll();
  round();
  EXPECT_FALSE(suppressed(1));
  round();
  EXPECT_FALSE(suppressed(0));
  EXPECT_TRUE(suppressed(1));
  EXPECT_TRUE(suppressed(2));
  EXPECT_EQ((*this)[1].suppressedAt(), now);
  EXPECT_EQ(group.episodes(), 1u);
}

TEST_F(AmpGroup, GammaIsASetting) {
  options.gamma = 4;
  make(2);
  squeezeAll();
  for (int i = 0; i < 3; ++i) round();
  EXPECT_FALSE(suppressed(1));
  round();
  EXPECT_TRUE(suppressed(1));
}

TEST_F(AmpGroup, ARoundIsAWindowOfTheInitialSubflow) {
  make(2);
  squeezeAll();
  for (int i = 0; i < 5; ++i) (*this)[1].onAck(ackOf((*this)[1], 10, now + i * 100ms));
  EXPECT_EQ(group.rounds(), 0u) << "of others";
  round();
  EXPECT_EQ(group.rounds(), 1u);
  (*this)[0].onAck(ackOf((*this)[0], 10, now - 1ms));
  EXPECT_EQ(group.rounds(), 1u) << "sent before that round ended";
}

TEST_F(AmpGroup, OneSubflowAboveTheMinimumStartsTheCountAnew) {
  make(2);
  squeezeAll();
  round();
  EXPECT_EQ(group.rounds(), 1u);
  for (int i = 0; i < 3; ++i) (*this)[1].onAck(ackOf((*this)[1], 2000, now));  // 2000 -> 3xxx
  ASSERT_GE((*this)[1].window(), 3000u);
  round();
  EXPECT_EQ(group.rounds(), 0u);
  EXPECT_FALSE(suppressed(1));
}

TEST_F(AmpGroup, ThePartOfADatagramAboveTheMinimumDoesNotCount) {
  make(2);
  squeezeAll();
  (*this)[1].onAck(ackOf((*this)[1], 1000, now));  // 2000 + 1000 * 1000 / 2000
  ASSERT_EQ((*this)[1].window(), 2500u);
  round();
  round();
  EXPECT_TRUE(suppressed(1));
}

TEST_F(AmpGroup, ReleasesAfterTauRoundsWithoutMarks) {
  make(3);
  squeezeAll();
  round();
  round();
  ASSERT_TRUE(suppressed(1));
  for (int i = 0; i < 7; ++i) round(0);
  EXPECT_TRUE(suppressed(1));
  round(0);
  EXPECT_FALSE(suppressed(1));
  EXPECT_FALSE(suppressed(2));
}

TEST_F(AmpGroup, AMarkStartsTheCountOfTauAnew) {
  options.tau = 3;
  make(2);
  squeezeAll();
  round();
  round();
  round(0);
  round(0);
  round(1);
  round(0);
  round(0);
  EXPECT_TRUE(suppressed(1));
  round(0);
  EXPECT_FALSE(suppressed(1));
}

TEST_F(AmpGroup, MarksOfOtherSubflowsDoNotDelayTheRelease) {
  options.tau = 2;
  make(2);
  squeezeAll();
  round();
  round();
  round(0);
  ackMarked((*this)[1], 10, 5, now);
  round(0);
  EXPECT_FALSE(suppressed(1));
}

TEST_F(AmpGroup, ReleasedSubflowsKeepTheirWindows) {
  options.tau = 1;
  make(2);
  squeezeAll();
  round();
  round();
  ASSERT_TRUE(suppressed(1));
  round(0);
  ASSERT_FALSE(suppressed(1));
  EXPECT_EQ((*this)[1].window(), 2000u);
  EXPECT_FALSE((*this)[1].inSlowStart());
}

TEST_F(AmpGroup, SuppressedSubflowsAreNoPartOfTheTotal) {
  make(2);
  squeezeAll();
  round();
  round();
  ASSERT_TRUE(suppressed(1));
  double before = static_cast<double>((*this)[0].window());
  EXPECT_NEAR(group.totalWindow(), before, 1);
  (*this)[0].onAck(ackOf((*this)[0], 1000, now));
  EXPECT_NEAR(static_cast<double>((*this)[0].window()), before + 1e6 / before, 2)
      << "like a single TCP";
}

TEST_F(AmpGroup, ASingleSubflowIsNeverSuppressed) {
  make(1);
  squeezeAll();
  for (int i = 0; i < 10; ++i) round();
  EXPECT_FALSE(suppressed(0));
  EXPECT_EQ(group.episodes(), 0u);
}

TEST_F(AmpGroup, SubflowsOutOfUseAreNotAsked) {
  make(3);
  (*this)[2].setUsable(false, at(0s));  // its window is 10000
  squeeze((*this)[0]);
  now = squeeze((*this)[1]);
  beginRounds();
  round();
  round();
  EXPECT_TRUE(suppressed(1));
  EXPECT_FALSE(suppressed(2));
}

TEST_F(AmpGroup, ASubflowThatComesBackDuringASuppressionIsSuppressed) {
  make(3);
  (*this)[2].setUsable(false, at(0s));
  squeeze((*this)[0]);
  now = squeeze((*this)[1]);
  beginRounds();
  round();
  round();
  (*this)[2].setUsable(true, now);
  EXPECT_TRUE(suppressed(2));
  for (int i = 0; i < 8; ++i) round(0);
  EXPECT_FALSE(suppressed(2));
}

TEST_F(AmpGroup, WithoutItsInitialSubflowASuppressionEnds) {
  make(3);
  squeezeAll();
  round();
  round();
  ASSERT_TRUE(suppressed(1));
  (*this)[0].setUsable(false, now);
  EXPECT_FALSE(suppressed(1));
  EXPECT_FALSE(suppressed(2));
  EXPECT_EQ(group.rounds(), 0u);
}

TEST_F(AmpGroup, TheNextSubflowIsInitialWhenTheFirstIsGone) {
  make(3);
  squeezeAll();
  (*this)[0].setUsable(false, now);
  Amp& next = (*this)[1];
  next.onAck(ackOf(next, 10, now - 100ms));
  for (int i = 0; i < 2; ++i, now += 100ms) ackMarked(next, 10, 1, now);
  EXPECT_FALSE(suppressed(1));
  EXPECT_TRUE(suppressed(2));
}

TEST_F(AmpGroup, ASubflowThatEndsLeavesTheGroup) {
  make(2);
  subflows.pop_back();
  EXPECT_EQ(group.totalWindow(), 10000);
  squeezeAll();
  round();
  round();
  EXPECT_EQ(group.episodes(), 0u);
}

TEST_F(AmpGroup, ARoundWithTooLittleToSendDoesNotCount) {
  make(2);
  squeezeAll();
  for (int i = 0; i < 5; ++i, now += 100ms) {
    AckSample ack = ackOf((*this)[0], 10, now);
    ack.inFlight = 900;
    ack.appLimited = true;
    (*this)[0].onAck(ack);
  }
  EXPECT_EQ(group.rounds(), 0u);
  EXPECT_FALSE(suppressed(1));
}

}  // namespace
}  // namespace braid::amp_test
