#include "web/views.h"

#include <gtest/gtest.h>

#include "tests/unit/web/fake_daemon.h"

namespace braid::day_book_test {
namespace {

using nlohmann::json;

struct DayBookTest : testing::Test {
  // Takes samples every 30 s from then on, each with the same counts.
  void look(size_t times) {
    for (; times > 0; --times) {
      at += 30;
      ++count;
      DaemonAnswer out;
      out.at = at;
      out.value = statusJson(gateway.gatewayStatus(), gateway.whole());
      for (json& peer : out.value["peers"]) {
        for (json& path : peer["subflows"]) {
          path["state"] = state;
          path["sent_bytes"] = 1000 * count, path["received_bytes"] = 2000 * count;
          path["sent_packets"] = 100 * count, path["lost_packets"] = 10 * count,
          path["recovered_packets"] = 8 * count;
        }
      }
      day.add(out);
    }
  }
  json step(size_t which) { return day.tell("")["paths"][0]["steps"][which]; }

  FakeGateway gateway;
  DayStore day;
  double at = 1'700'000'000;
  uint64_t count = 0;
  std::string state = "active";
};

TEST_F(DayBookTest, KeepsStepsOfTwoMinutes) {
  look(5);
  json told = day.tell("");
  ASSERT_EQ(told["paths"].size(), 2u);
  ASSERT_EQ(told["paths"][0]["steps"].size(), 1u);
  EXPECT_EQ(told["columns"].size(), step(0).size());
  EXPECT_EQ(step(0).dump(), json({static_cast<int64_t>(at), 120.0, 4000, 8000, 400, 40, 32,
                                  told["paths"][0]["path"] == "lte" ? 42.0 : 12.0, 0.0, "active"})
                                .dump());
}

TEST_F(DayBookTest, TheWorstStateOfAStepIsKept) {
  look(2);
  state = "suspect";
  look(1);
  state = "active";
  look(6);
  EXPECT_EQ(step(0).back(), "suspect");
  EXPECT_EQ(step(1).back(), "active");
}

TEST_F(DayBookTest, ARestartOfTheDaemonAndAGapCountNothingTwice) {
  look(3);
  count = 0;  // it counts from 0
  look(2);
  EXPECT_EQ(step(0)[2], 4000) << "with what was counted since the restart";
  at += 600;
  look(5);
  EXPECT_EQ(step(1)[2], 4000) << "what came in the gap is of no step";
}

TEST_F(DayBookTest, KeepsADayAndSoManyPaths) {
  look(4 * DayStore::kSteps + 100);
  EXPECT_EQ(day.tell("")["paths"][0]["steps"].size(), DayStore::kSteps);
  gateway.names.clear();
  for (int i = 0; i < 200; ++i) gateway.names.push_back("edge" + std::to_string(i));
  look(5);
  EXPECT_EQ(day.paths(), DayStore::kMostPaths);
  EXPECT_EQ(day.tell("")["paths"].size(), DayStore::kTold);
  EXPECT_EQ(day.tell("edge3")["paths"].size(), 2u);
  EXPECT_EQ(day.tell("nobody")["paths"].size(), 0u);
}

TEST_F(DayBookTest, OfManyPathsTheBusiestAreTold) {
  gateway.names.clear();
  for (int i = 0; i < 30; ++i) gateway.names.push_back("edge" + std::to_string(i));
  for (int n = 1; n <= 9; ++n) {
    at += 30;
    DaemonAnswer out;
    out.at = at;
    out.value = statusJson(gateway.gatewayStatus(), gateway.whole());
    size_t which = 0;
    for (json& peer : out.value["peers"])
      for (json& path : peer["subflows"])
        path["sent_bytes"] = 1000 * n * which++, path["received_bytes"] = 0;
    day.add(out);
  }
  const json told = day.tell("")["paths"];
  ASSERT_EQ(told.size(), DayStore::kTold);
  EXPECT_EQ(told.front()["peer"], "edge14") << "60 paths, the last ones carry most";
  EXPECT_EQ(told.back()["peer"], "edge29");
}

TEST_F(DayBookTest, AFailureIsAGap) {
  DaemonAnswer failed;
  failed.problem = "no daemon answers";
  day.add(failed);
  EXPECT_EQ(day.paths(), 0u);
}

}  // namespace
}  // namespace braid::day_book_test
