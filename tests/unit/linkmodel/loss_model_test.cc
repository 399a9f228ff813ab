#include "simnet/link/loss_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace braid::loss_model_test {
namespace {

using Verdict = LossModel::Verdict;
using testing::ElementsAre;
using testing::IsEmpty;

LossModel make(const LinkOptions& options, uint64_t seed = 1) {
  LossModel model{Random(seed)};
  model.setOptions(options);
  return model;
}

Verdict next(LossModel& model) {
  model.count();
  return model.verdict();
}

/// Numbers (from 1) of the packets lost among the next n.
std::vector<int> lostOf(LossModel& model, int n) {
  std::vector<int> lost;
  for (int i = 1; i <= n; ++i) {
    if (next(model) != Verdict::kKeep) lost.push_back(i);
  }
  return lost;
}

TEST(LossModel, KeepsAllByDefault) {
  LossModel model = make({});
  EXPECT_THAT(lostOf(model, 10000), IsEmpty());
}

TEST(LossModel, ExactNumbersInAnyOrder) {
  LossModel model = make({.dropPackets = {7, 1, 3, 3}});
  EXPECT_THAT(lostOf(model, 20), ElementsAre(1, 3, 7));
}

TEST(LossModel, CountsPacketsThatNeverReachTheWire) {
  LossModel model = make({.dropPackets = {3, 5}});
  model.count();
  model.count();
  EXPECT_EQ(next(model), Verdict::kExact);
  model.count();
  model.count();  // number 5 is dropped before the wire
  EXPECT_THAT(lostOf(model, 10), IsEmpty());
}

TEST(LossModel, ChangedListCountsAnewAndSameListGoesOn) {
  LossModel model = make({.dropPackets = {4}});
  EXPECT_THAT(lostOf(model, 2), IsEmpty());
  model.setOptions({.loss = 0, .dropPackets = {4}});
  EXPECT_THAT(lostOf(model, 3), ElementsAre(2));
  model.setOptions({.dropPackets = {2}});
  EXPECT_THAT(lostOf(model, 3), ElementsAre(2));
  model.restartCount();
  EXPECT_THAT(lostOf(model, 3), ElementsAre(2));
}

TEST(LossModel, IndependentLossRate) {
  constexpr int kPackets = 200000;
  for (double p : {0.001, 0.02, 0.5}) {
    LossModel model = make({.loss = p}, 42);
    double sigma = std::sqrt(kPackets * p * (1 - p));
    EXPECT_NEAR(static_cast<double>(lostOf(model, kPackets).size()), kPackets * p, 4 * sigma) << p;
  }
  LossModel all = make({.loss = 1});
  EXPECT_EQ(lostOf(all, 1000).size(), 1000u);
}

TEST(LossModel, IndependentLossHasNoBursts) {
  constexpr int kPackets = 200000;
  LossModel model = make({.loss = 0.1}, 42);
  std::vector<int> lost = lostOf(model, kPackets);
  int pairs = 0;
  for (size_t i = 1; i < lost.size(); ++i) pairs += lost[i] == lost[i - 1] + 1;
  EXPECT_NEAR(pairs, kPackets * 0.01, 250);
}

struct Bursts {
  GilbertElliott ge;
  const char* what;
};

void PrintTo(const Bursts& b, std::ostream* os) {
  *os << b.what;
}

class GilbertElliottTest : public testing::TestWithParam<Bursts> {};

TEST_P(GilbertElliottTest, LossRateMatchesTheFormula) {
  const GilbertElliott& ge = GetParam().ge;
  constexpr int kPackets = 1'000'000;
  LossModel model = make({.bursts = ge}, 9);
  double lost = static_cast<double>(lostOf(model, kPackets).size()) / kPackets;
  double bad = ge.goodToBad / (ge.goodToBad + ge.badToGood);
  double expected = bad * ge.lossBad + (1 - bad) * ge.lossGood;
  // The losses of one burst are correlated: the variance of the time in the bad state grows by the
  // factor (1 + memory) / (1 - memory).
  double memory = 1 - ge.goodToBad - ge.badToGood;
  double between =
      bad * (1 - bad) * (1 + memory) / (1 - memory) * std::pow(ge.lossBad - ge.lossGood, 2);
  double within = bad * ge.lossBad * (1 - ge.lossBad) + (1 - bad) * ge.lossGood * (1 - ge.lossGood);
  EXPECT_NEAR(lost, expected, 4 * std::sqrt((between + within) / kPackets))
      << GetParam().what << ", seed 9";
}

INSTANTIATE_TEST_SUITE_P(
    Links, GilbertElliottTest,
    testing::Values(
        Bursts{{.goodToBad = 0.01, .badToGood = 0.2}, "short full losses"},
        Bursts{{.goodToBad = 0.001, .badToGood = 0.02, .lossGood = 0.001, .lossBad = 0.5},
               "long half"},
        Bursts{{.goodToBad = 0, .badToGood = 1, .lossGood = 0.03, .lossBad = 1}, "never bad"}));

TEST(GilbertElliott, MeanBurstIsOneOverBadToGood) {
  LossModel model =
      make({.bursts = {.goodToBad = 0.01, .badToGood = 0.25, .lossGood = 0, .lossBad = 1}}, 9);
  std::vector<int> lost = lostOf(model, 1'000'000);
  size_t bursts = 1;
  for (size_t i = 1; i < lost.size(); ++i) bursts += lost[i] != lost[i - 1] + 1;
  EXPECT_NEAR(static_cast<double>(lost.size()) / static_cast<double>(bursts), 4.0, 0.2);
  // In the good state a burst begins with probability goodToBad.
  double good = 1'000'000.0 - static_cast<double>(lost.size());
  EXPECT_NEAR(static_cast<double>(bursts) / good, 0.01, 0.0005);
}

TEST(LossModel, CausesAreNamedAndIndependent) {
  LossModel bursts = make({.bursts = {.goodToBad = 1, .badToGood = 0}});
  EXPECT_EQ(next(bursts), Verdict::kBurst);
  LossModel loss = make({.loss = 1});
  EXPECT_EQ(next(loss), Verdict::kLoss);

  // Exact drops and bursts do not shift which packets independent loss takes.
  LossModel plain = make({.loss = 0.1}, 3);
  LossModel mixed = make(
      {.loss = 0.1, .bursts = {.goodToBad = 0.1, .badToGood = 0.5}, .dropPackets = {1, 2, 50, 99}},
      3);
  for (int i = 0; i < 5000; ++i) {
    Verdict a = next(plain);
    Verdict b = next(mixed);
    // A packet that independent loss takes in one run must also be lost, for any cause, in the
    // other.
    EXPECT_TRUE(a != Verdict::kLoss || b != Verdict::kKeep) << i;
    EXPECT_TRUE(b != Verdict::kLoss || a == Verdict::kLoss) << i;
  }
}

TEST(LossModel, BurstStateSurvivesUnrelatedChanges) {
  LinkOptions options{.bursts = {.goodToBad = 1, .badToGood = 0}};
  LossModel model = make(options);
  EXPECT_EQ(next(model), Verdict::kBurst);
  options.bursts.goodToBad = 1e-12;  // now only the bad state loses packets
  options.loss = 0.5;
  model.setOptions(options);
  EXPECT_EQ(next(model), Verdict::kBurst);
}

}  // namespace
}  // namespace braid::loss_model_test
