#include "evaluation/models/figures.h"

#include <gtest/gtest.h>

namespace braid::sim::figures_test {
namespace {

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(percentile(values, 0.5), 50);
  EXPECT_EQ(percentile(values, 0.99), 99);
  EXPECT_EQ(percentile(values, 0.991), 100);
  EXPECT_EQ(percentile(values, 1), 100);
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile({7}, 0.99), 7);
  EXPECT_EQ(percentile({}, 0.99), 0);
}

TEST(Figures, CountFlowsAndShares) {
  Figures figures;
  FlowResult clean{.seconds = 1, .complete = true, .timeout = false, .sender = {}};
  clean.sender.sentBytes = 900;
  FlowResult bad{.seconds = 3, .complete = false, .timeout = true, .sender = {}};
  bad.sender.sentBytes = 100, bad.sender.protectionBytes = 50;
  bad.sender.lostPackets = 4, bad.sender.recovered = 1, bad.sender.copies = 2,
  bad.sender.parities = 2;
  figures.add(clean);
  figures.add(bad);
  Json j = figures.json();
  EXPECT_EQ(j["flows"], 2);
  EXPECT_EQ(j["incomplete"], 1);
  EXPECT_EQ(j["mean"], 2.0);
  EXPECT_EQ(j["max"], 3.0);
  EXPECT_EQ(j["timeout_share"], 0.5);
  EXPECT_EQ(j["loss_share"], 0.5);
  EXPECT_EQ(j["recovery_share"], 0.5);
  EXPECT_EQ(j["extra_load"], 0.05);
  EXPECT_EQ(j["recovered_share"], 0.25);
  EXPECT_EQ(j["useful_share"], 0.25);
}

TEST(Figures, SayNothingOfSharesWhenFlowsRanTogether) {
  Figures figures;
  figures.add(1.0, true);
  Json j = figures.json();
  EXPECT_EQ(j["flows"], 1);
  EXPECT_FALSE(j.contains("timeout_share"));
}

TEST(Figures, HashTellsWorldsApart) {
  Figures a, b;
  a.addHash(1);
  b.addHash(2);
  EXPECT_NE(a.json()["hash"], b.json()["hash"]);
}

}  // namespace
}  // namespace braid::sim::figures_test
