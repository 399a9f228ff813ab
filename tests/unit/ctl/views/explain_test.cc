#include "ctl/views/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/control/history.h"
#include "gateway/control/status_json.h"

namespace braid::explain_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// A gateway's history, written as the daemon does.
struct Past {
  Past() {
    hub.name = "hub";
    hub.up = true;
    for (const char* uplink : {"wifi", "lte"}) {
      SubflowStatus& s = hub.subflows.emplace_back();
      s.uplink = s.path = uplink;
      s.state = "active";
      s.srtt = 20ms;
    }
  }
  SubflowStatus& wifi() { return hub.subflows[0]; }
  SubflowStatus& lte() { return hub.subflows[1]; }
  void step() {
    now += 10;
    history.add(hub, now);
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) {
      for (SubflowStatus& s : hub.subflows) s.sentPackets += 1000, s.receivedPackets += 1000;
      step();
    }
  }
  void event(Event::Kind kind, double at, const std::string& path) {
    history.add(Event{kind, "hub", path + " did something", path}, at);
  }
  json explained(double since = 600) {
    PastAnswers past;
    past.index = historyObject(history).whole();
    for (const History::Path& p : history.paths()) past.paths.push_back(historyObject(p).whole());
    for (const History::Peer& p : history.peers()) past.peers.push_back(historyObject(p).whole());
    auto until = static_cast<double>(now);
    return explain(past, until - since, until);
  }
  json path(const json& all, const std::string& name) {
    for (const json& p : all["paths"])
      if (p["path"] == name) return p;
    return {};
  }

  PeerStatus hub;
  History history;
  int64_t now = 1'000'000;
};

TEST(Explain, APathWithoutTroubleIsGood) {
  Past past;
  past.steps(30);
  json all = past.explained();
  EXPECT_TRUE(past.path(all, "wifi")["troubles"].empty());
  EXPECT_THAT(explainText(all), HasSubstr("hub by wifi: good;"));
  EXPECT_THAT(explainText(all), HasSubstr("lost on the path 0 %, RTT"));
}

TEST(Explain, LossesInARowAreOneTroubleWithWhatBecameOfThem) {
  Past past;
  past.steps(5);
  for (int i = 0; i < 3; ++i) {
    past.wifi().lostPackets += 50;
    past.wifi().recovered += 40;
    past.hub.retransmitted += 8, past.hub.retransmitDelay += 8 * 84, past.hub.undelivered += 2;
    past.steps(1);
  }
  past.steps(10);
  past.wifi().lostPackets += 20;
  past.steps(1);
  json all = past.explained(), wifi = past.path(all, "wifi");
  ASSERT_EQ(wifi["troubles"].size(), 2u);
  EXPECT_EQ(wifi["troubles"][0]["kind"], "loss");
  EXPECT_EQ(wifi["troubles"][0]["lost"], 150);
  EXPECT_EQ(wifi["troubles"][0]["recovered"], 120);
  EXPECT_EQ(wifi["troubles"][0]["to_unix_s"].get<double>() -
                wifi["troubles"][0]["from_unix_s"].get<double>(),
            30);
  EXPECT_EQ(wifi["lost_packets"], 170);
  EXPECT_EQ(all["sums"]["recovered_packets"], 120);
  EXPECT_EQ(all["sums"]["lost_packets"], 170);
  EXPECT_EQ(all["sums"]["retransmitted_packets"], 24);
  EXPECT_EQ(all["sums"]["retransmit_delay_ms"], 84.0);
  EXPECT_EQ(all["sums"]["undelivered_packets"], 6);
  std::string text = explainText(all);
  EXPECT_THAT(text, HasSubstr("hub by wifi: bad 2 times;"));
  EXPECT_THAT(text,
              HasSubstr("lost 5.00 % of 3000 packets (150): 120 of them repaired before the sender "
                        "knew, the other 30 sent again or never delivered"));
  EXPECT_THAT(text, HasSubstr("(70.6 % of it repaired before the sender knew)"));
  EXPECT_THAT(text, HasSubstr("Of all packets sent: 170 lost on the path, 120 of them repaired "
                              "before the sender knew; 24 sent again (84.0 ms later), 6 never "
                              "delivered."));
  EXPECT_THAT(text, HasSubstr("hub by lte: good"));
}

TEST(Explain, LossesThatWereNoneDoNotCount) {
  Past past;
  past.steps(2);
  past.wifi().lostPackets += 50;
  past.wifi().spuriousLosses += 50;
  past.steps(2);
  EXPECT_TRUE(past.path(past.explained(), "wifi")["troubles"].empty());
}

TEST(Explain, APathThatFellSilentWhileAnotherWorkedIsAStallAvoided) {
  Past past;
  past.steps(10);
  auto at = static_cast<double>(past.now);
  past.event(Event::Kind::kSubflowSuspect, at + 2, "wifi");
  past.event(Event::Kind::kSubflowUp, at + 5.5, "wifi");
  past.steps(9);
  past.wifi().state = "suspect";  // of the last step, which ended before the path was back
  past.steps(1);
  json all = past.explained(), wifi = past.path(all, "wifi");
  ASSERT_EQ(wifi["troubles"].size(), 1u);
  EXPECT_EQ(wifi["troubles"][0]["stall_avoided"], true);
  EXPECT_EQ(all["sums"]["stalls_avoided"], 1);
  EXPECT_EQ(all["sums"]["paths_came_back"], 1);
  EXPECT_THAT(explainText(all),
              HasSubstr("fell silent for 3.50 s; its packets went by the other paths: a stall "
                        "avoided\n"));
  EXPECT_THAT(explainText(all), HasSubstr("hub by wifi: bad 1 time;"));
}

TEST(Explain, AnOutageThatGoesOnIsDownSinceAndNoStallAvoidedYet) {
  Past past;
  past.steps(10);
  past.event(Event::Kind::kSubflowSuspect, static_cast<double>(past.now) + 2, "wifi");
  past.steps(3);
  json all = past.explained(), trouble = past.path(all, "wifi")["troubles"][0];
  EXPECT_EQ(trouble["went_elsewhere"], true);
  EXPECT_EQ(trouble["stall_avoided"], false);
  EXPECT_EQ(all["sums"]["stalls_avoided"], 0);
  std::string text = explainText(all);
  EXPECT_THAT(text, HasSubstr("hub by wifi: down;"));
  EXPECT_THAT(text, HasSubstr("  down since "));
  EXPECT_THAT(text, HasSubstr("  fell silent; its packets go by the other paths\n"));
}

TEST(Explain, APathThatWasDownAllTheTimeIsDown) {
  Past past;
  past.wifi().state = "failed";
  past.steps(10);
  EXPECT_THAT(explainText(past.explained()), HasSubstr("hub by wifi: down;"));
}

TEST(Explain, BlipsAreCountedAndNoTrouble) {
  Past past;
  past.steps(5);
  past.wifi().blips += 3;
  past.steps(1);
  json all = past.explained();
  EXPECT_TRUE(past.path(all, "wifi")["troubles"].empty());
  EXPECT_EQ(all["sums"]["blips"], 3);
  EXPECT_THAT(explainText(all), HasSubstr(", 3 blips of less than 100 ms\n"));
}

TEST(Explain, WhenAllPathsFellSilentNoStallWasAvoided) {
  Past past;
  past.steps(10);
  auto at = static_cast<double>(past.now);
  past.event(Event::Kind::kSubflowSuspect, at + 2, "wifi");
  past.event(Event::Kind::kSubflowSuspect, at + 2, "lte");
  past.steps(10);
  json all = past.explained();
  EXPECT_EQ(all["sums"]["stalls_avoided"], 0);
  EXPECT_EQ(all["sums"]["paths_taken_out"], 2);
  EXPECT_EQ(all["sums"]["paths_came_back"], 0);
  EXPECT_THAT(explainText(all), HasSubstr("down since"));
}

TEST(Explain, AnIdlePathThatFellSilentCostNobodyAStall) {
  Past past;
  for (int i = 0; i < 10; ++i) past.step();
  past.event(Event::Kind::kSubflowSuspect, static_cast<double>(past.now) + 2, "wifi");
  past.step();
  EXPECT_EQ(past.explained()["sums"]["stalls_avoided"], 0);
}

TEST(Explain, AFullLineIsNamed) {
  Past past;
  past.steps(5);
  past.lte().srtt = 420ms;
  past.lte().queueDelay = 400ms;
  past.steps(2);
  EXPECT_THAT(explainText(past.explained()), HasSubstr("packets waited up to 400 ms on the way"));
}

TEST(Explain, LooksBackNoFurtherThanAsked) {
  Past past;
  past.wifi().lostPackets += 500;
  past.event(Event::Kind::kPeerUp, 1'000'001, "");
  past.steps(60);
  EXPECT_EQ(past.path(past.explained(300), "wifi")["lost_packets"], 0);
  EXPECT_TRUE(past.explained(300)["events"].empty());
  EXPECT_EQ(past.path(past.explained(600), "wifi")["lost_packets"], 500);
  EXPECT_EQ(past.explained(600)["events"].size(), 1u);
}

TEST(Explain, WhatHappenedBeforeTheClockWasSetBackIsNoneOfTheLastSeconds) {
  Past past;
  past.steps(5);
  past.event(Event::Kind::kPeerUp, 1'000'040, "");
  past.event(Event::Kind::kPeerDown, 1'003'640, "");
  const json events = past.explained()["events"];
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["kind"], "peer_up");
}

TEST(Explain, OtherEventsAreListed) {
  Past past;
  past.steps(5);
  past.history.add(Event{Event::Kind::kPeerDown, "hub", "is down"}, static_cast<double>(past.now));
  EXPECT_THAT(explainText(past.explained()), HasSubstr("peer hub: is down"));
}

TEST(Explain, TakesAnyAnswer) {
  PastAnswers past;
  EXPECT_THAT(explainText(explain(past, 0, 10)), HasSubstr("Nothing is known of any path"));
  past.index =
      json::parse(R"({"events":[1,{"at_unix_s":"x"},{"at_unix_s":5,"kind":"path_up","peer":3}]})");
  past.paths = {json::parse("7"),
                json::parse(R"({"columns":["until_unix_s",4],"steps":[[5,6],[],{},["a"]]})")};
  past.peers = {json::parse("[]")};
  EXPECT_THAT(explainText(explain(past, 0, 10)), Not(HasSubstr("stalls")));
}

}  // namespace
}  // namespace braid::explain_test
