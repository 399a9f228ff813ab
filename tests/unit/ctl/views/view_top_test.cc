#include "ctl/views/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::view_top_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string shown(const TopScreen& screen, TopView view, size_t rows = 99, size_t columns = 999) {
  std::string out;
  for (const std::string& line : screen.lines(view, rows, columns)) out += line + "\n";
  return out;
}

TopLook look(double at, uint64_t bytes, uint64_t packets = 0, uint64_t lost = 0,
             uint64_t recovered = 0) {
  json subflow{{"id", 0},
               {"path", "wifi"},
               {"state", "active"},
               {"sent_bytes", bytes},
               {"sent_packets", packets},
               {"lost_packets", lost},
               {"recovered_packets", recovered},
               {"received_bytes", 2 * bytes},
               {"srtt_ms", 12.5},
               {"queue_delay_ms", 1.5},
               {"mtu_bytes", 1500}};
  json peer{{"name", "hub"},
            {"up", true},
            {"sent_bytes", bytes},
            {"received_bytes", bytes},
            {"flow_count", 2},
            {"age_s", 61},
            {"subflows", json::array({subflow})}};
  json flows{{"peers",
              {{{"name", "hub"},
                {"flows",
                 {{{"name", "tcp slow"}, {"bytes", 10 * bytes}},
                  {{"name", "tcp fast"}, {"bytes", bytes * bytes}}}}}}}};
  return {at, {{"gateway", {{"version", "1.2"}}}, {"peers", json::array({peer})}}, flows};
}

TEST(Top, ShowsRatesOfTheLastTwoLooks) {
  TopScreen screen;
  screen.add(look(1, 1000));
  EXPECT_THAT(shown(screen, TopView::kPaths), HasSubstr("braid 1.2"));
  screen.add(look(3, 251'000));
  EXPECT_THAT(shown(screen, TopView::kPaths),
              HasSubstr("1.00 Mbit/s  2.00 Mbit/s  12.5 ms  1.50 ms"));
  EXPECT_THAT(shown(screen, TopView::kPeers), HasSubstr("hub   up     1.00 Mbit/s  1.00 Mbit/s"));
}

TEST(Top, OfAPathThatIsDownOnlyThatIsShown) {
  TopScreen screen;
  screen.add(look(1, 1000, 1000, 0, 0));
  TopLook now = look(3, 251'000, 2000, 30, 20);
  json& path = now.status["peers"][0]["subflows"][0];
  path["state"] = "suspect";
  path["down_s"] = 4.2;
  screen.add(now);
  EXPECT_THAT(shown(screen, TopView::kPaths),
              HasSubstr("hub   wifi  down for 4 s   -     -    -      -     -         -  1500\n"));
  EXPECT_EQ(pathState({{"state", "suspect"}, {"down_s", 0.25}}), "down for 250 ms");
  EXPECT_EQ(pathState({{"state", "validating"}, {"down_s", 0}}), "validating");
}

TEST(Top, ShowsLossesAndWhatOfThemWasRepairedOfTheLastSeconds) {
  TopScreen screen;
  screen.add(look(1, 0, 1000, 500, 0));
  screen.add(look(2, 0, 2000, 500, 0));
  screen.add(look(10, 0, 3000, 530, 20));
  EXPECT_THAT(shown(screen, TopView::kPaths), HasSubstr("1.50 %    66.7 %"));
  screen.add(look(30, 0, 3000, 530, 20));
  screen.add(look(31, 0, 3000, 530, 20));
  EXPECT_THAT(shown(screen, TopView::kPaths), Not(HasSubstr("1.50 %"))) << "long ago";
}

TEST(Top, StreamsAreAmongTheFlows) {
  TopScreen screen;
  for (unsigned i = 0; i < 2; ++i) {
    TopLook each = look(1 + i, 1000 * (1 + i));
    each.flows["peers"][0]["streams"] = {{{"name", "tcp stream"}, {"sent_bytes", 500'000u * i}}};
    screen.add(std::move(each));
  }
  EXPECT_THAT(shown(screen, TopView::kFlows), HasSubstr("4.00 Mbit/s"));
  EXPECT_THAT(shown(screen, TopView::kFlows), HasSubstr("tcp stream  hub   stream, "));
}

TEST(Top, TheFastestFlowIsFirst) {
  TopScreen screen;
  screen.add(look(1, 1000));
  screen.add(look(2, 2000));
  std::string text = shown(screen, TopView::kFlows);
  EXPECT_LT(text.find("tcp fast"), text.find("tcp slow"));
  EXPECT_THAT(text, HasSubstr("80.0 kbit/s"));
}

TEST(Top, FitsTheScreen) {
  TopScreen screen;
  screen.add(look(1, 1000));
  auto lines = screen.lines(TopView::kPaths, 3, 10);
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 10u);
}

TEST(Top, ACounterThatBeganAnewIsNoHugeRate) {
  TopScreen screen;
  screen.add(look(1, 1'000'000));
  screen.add(look(2, 125));
  EXPECT_THAT(shown(screen, TopView::kPaths), HasSubstr("1.00 kbit/s"));
}

TEST(Top, ANewPathHasTheRateOfWhatItCarriedSinceItBegan) {
  TopScreen screen;
  TopLook before = look(1, 1'000'000);
  before.status["peers"][0]["subflows"][0]["id"] = 7;
  screen.add(before);
  screen.add(look(2, 125));
  EXPECT_THAT(shown(screen, TopView::kPaths), HasSubstr("1.00 kbit/s  2.00 kbit/s"));
}

TEST(Top, ADaemonThatStartedAgainHasNoRateUntilItsSecondAnswer) {
  TopScreen screen;
  for (int i = 0; i < 3; ++i) screen.add(look(1000 + i, 1'000'000, 1000, 100));
  screen.add(look(0.5, 125));
  EXPECT_THAT(shown(screen, TopView::kPaths), Not(HasSubstr("bit/s")));
  screen.add(look(1.5, 250, 100, 7));
  EXPECT_THAT(shown(screen, TopView::kPaths), HasSubstr("1.00 kbit/s"));
  EXPECT_THAT(shown(screen, TopView::kPaths), HasSubstr("7.00 %"));
}

TEST(Top, TakesAnyAnswer) {
  TopScreen screen;
  EXPECT_TRUE(screen.lines(TopView::kPaths, 10, 10).empty());
  screen.add({1, json::parse("[1]"), json::parse("3")});
  screen.add({1, json::parse(R"({"peers":[3,{"name":4,"subflows":[{}]}]})"), {}});
  for (TopView view : {TopView::kPaths, TopView::kPeers, TopView::kFlows})
    EXPECT_NE(shown(screen, view), "");
}

TEST(Top, AKeyGoesThroughAllViews) {
  EXPECT_EQ(nextView(TopView::kPaths), TopView::kPeers);
  EXPECT_EQ(nextView(TopView::kPeers), TopView::kFlows);
  EXPECT_EQ(nextView(TopView::kFlows), TopView::kPaths);
}

}  // namespace
}  // namespace braid::view_top_test
