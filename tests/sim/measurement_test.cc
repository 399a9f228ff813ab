// Load tests of paths, which the operator requests.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::measurement_test {
namespace {

struct LoadTest : testing::Test {
  LoadTest() { s.path("dsl", kDsl).path("lte", kLte).start().run(2s); }

  std::string begin(const std::string& path, Duration time = 5s, uint64_t bytes = 100_MB) {
    return s.edge.loadTest().start("hub", {.path = path, .time = time, .bytes = bytes},
                                   s.edge.now());
  }
  uint64_t delivered(std::string_view path) { return s.subflow(s.edge, path)->deliveredBytes; }

  Scenario s{1};
};

TEST_F(LoadTest, FillsThePathThatIsMeantAndNoOther) {
  ASSERT_EQ(begin("dsl"), "");
  uint64_t dsl = delivered("dsl"), lte = delivered("lte");
  s.run(5s);
  double rate = static_cast<double>(delivered("dsl") - dsl) * 8 / 5;
  EXPECT_GT(rate, 0.85 * 50e6) << s.report();
  EXPECT_LT(delivered("lte") - lte, 20'000u);
}

TEST_F(LoadTest, AllPathsTogetherGiveTheirSum) {
  ASSERT_EQ(begin(""), "");
  uint64_t before = delivered("dsl") + delivered("lte");
  s.run(5s);
  double rate = static_cast<double>(delivered("dsl") + delivered("lte") - before) * 8 / 5;
  EXPECT_GT(rate, 0.8 * 70e6) << s.report();
}

TEST_F(LoadTest, EndsWithItsTime) {
  ASSERT_EQ(begin("dsl", 1s), "");
  s.run(500ms);
  MeasureStatus running = s.edge.loadTest().status(s.edge.now());
  EXPECT_TRUE(running.running);
  EXPECT_GT(running.sentBytes, 1'000'000u);
  s.run(1s);
  EXPECT_FALSE(s.edge.loadTest().status(s.edge.now()).running);
  uint64_t sent = s.sentOn("dsl");
  s.run(3s);
  EXPECT_LT(s.sentOn("dsl") - sent, 100u) << "packets";
}

TEST_F(LoadTest, EndsWithItsBytes) {
  ASSERT_EQ(begin("dsl", 60s, 1_MB), "");
  s.run(3s);
  MeasureStatus status = s.edge.loadTest().status(s.edge.now());
  EXPECT_FALSE(status.running);
  EXPECT_GE(status.sentBytes, 1'000'000u);
  EXPECT_LE(status.sentBytes, 1'002'000u) << "one datagram more at most";
}

TEST_F(LoadTest, EndsWhenItIsTold) {
  ASSERT_EQ(begin("dsl", 60s), "");
  s.run(500ms);
  s.edge.loadTest().stop();
  EXPECT_FALSE(s.edge.loadTest().status(s.edge.now()).running);
  uint64_t sent = s.edge.loadTest().status(s.edge.now()).sentBytes;
  s.run(1s);
  EXPECT_EQ(s.edge.loadTest().status(s.edge.now()).sentBytes, sent);
}

TEST_F(LoadTest, LeavesWhatHostsSendItsPlace) {
  ASSERT_EQ(begin("", 20s, 1000_MB), "");
  s.run(2s);
  TcpFlow& page = s.upload(200_KB);
  ASSERT_TRUE(s.finish(page, 3s)) << page.describe() << s.report();
}

TEST_F(LoadTest, OneAtATimeOfWhatThereIs) {
  EXPECT_EQ(s.edge.loadTest().start("nobody", {}, s.edge.now()), "there is no peer nobody");
  EXPECT_EQ(begin("wifi"), "there is no usable path wifi to hub");
  ASSERT_EQ(begin("dsl"), "");
  EXPECT_EQ(begin("lte"), "a test runs already, of hub; wait for its end");
}

TEST_F(LoadTest, ANewSessionDoesNotGoOnWithIt) {
  ASSERT_EQ(begin("dsl", 60s), "");
  s.run(500ms);
  s.hub.stop();
  s.hub.start();
  s.run(15s);
  ASSERT_TRUE(s.isUp()) << s.report();
  EXPECT_FALSE(s.edge.loadTest().status(s.edge.now()).running);
}

TEST(LoadTestOfPreferences, MeteredPathsAreMeasuredWhenTheyAreNamedOnly) {
  Scenario s(1);
  s.path("dsl", kDsl).path("lte", kLte);
  for (UplinkSpec& u : s.edge.uplinks)
    if (u.name == "lte") u.preference.use = PathUse::kMetered;
  s.start().run(2s);
  auto lte = [&] { return s.subflow(s.edge, "lte")->sentBytes; };
  uint64_t before = lte();
  ASSERT_EQ(s.edge.loadTest().start("hub", {.path = "", .time = 2s}, s.edge.now()), "");
  s.run(3s);
  EXPECT_LT(lte() - before, 20'000u);
  ASSERT_EQ(s.edge.loadTest().start("hub", {.path = "lte", .time = 2s}, s.edge.now()), "");
  s.run(3s);
  EXPECT_GT(lte() - before, 1'000'000u) << "a path that rests is measured all the same";
}

}  // namespace
}  // namespace braid::sim::measurement_test
