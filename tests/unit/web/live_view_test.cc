#include "web/views.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/temporary_folder.h"
#include "tests/unit/web/fake_daemon.h"

namespace braid::live_view_test {
namespace {

using nlohmann::json;

struct LiveViewTest : testing::Test {
  // A status answer at second `at`. All its counters are proportional to `times`.
  Answers::Shared status(double at, uint64_t times) {
    DaemonAnswer out;
    out.at = at;
    out.value = statusJson(gateway.gatewayStatus(), gateway.whole());
    for (json& peer : out.value["peers"]) {
      peer["sent_bytes"] = 1000 * times;
      peer["received_bytes"] = 5000 * times;
      peer["retransmitted"] = 4 * times;
      peer["retransmit_delay_ms"] = 4 * 84.5 * static_cast<double>(times);
      peer["undelivered"] = times;
      for (json& path : peer["subflows"]) {
        path["sent_bytes"] = 1500 * times;
        path["received_bytes"] = 6000 * times;
        path["sent_packets"] = 100 * times;
        path["lost_packets"] = 12 * times;
        path["spurious_losses"] = 2 * times;
        path["recovered_packets"] = 9 * times;
        path["state"] = "active";
      }
    }
    return std::make_shared<const DaemonAnswer>(std::move(out));
  }
  Answers::Shared flows(double at, uint64_t times) {
    DaemonAnswer out;
    out.at = at;
    out.value = flowsJson(gateway.whole(kListedFlows));
    uint64_t rate = 0;
    for (json& peer : out.value["peers"])
      for (json& flow : peer["flows"]) flow["bytes"] = ++rate * times;
    return std::make_shared<const DaemonAnswer>(std::move(out));
  }
  FakeGateway gateway;
  LiveView live;
};

TEST_F(LiveViewTest, RatesAndLossesFollowFromTwoAnswers) {
  live.addStatus(status(100, 0));
  json first = live.view("");
  EXPECT_TRUE(first["paths"][0]["up_bytes_per_s"].is_null()) << "not known yet";
  EXPECT_TRUE(first["paths"][0]["lost_share"].is_null());
  EXPECT_EQ(first["paths"][0]["srtt_ms"], 12.0);
  live.addStatus(status(102, 2));
  json path = live.view("")["paths"][0];
  EXPECT_EQ(path["path"], "wifi");
  EXPECT_EQ(path["peer"], "hub");
  EXPECT_EQ(path["up_bytes_per_s"], 1500.0);
  EXPECT_EQ(path["down_bytes_per_s"], 6000.0);
  EXPECT_EQ(path["lost_share"], 0.1);
  EXPECT_EQ(path["recovered_share"], 0.9);
  EXPECT_EQ(path["sent_bytes"], 3000) << "as the daemon said it";
  json totals = live.view("")["totals"];
  EXPECT_EQ(totals["down_bytes_per_s"], 5000.0) << "of inner packets";
  EXPECT_EQ(totals["minute_lost_packets"], 40) << "of two paths";
  EXPECT_EQ(totals["minute_recovered_packets"], 36);
  EXPECT_EQ(totals["minute_retransmitted"], 8);
  EXPECT_EQ(totals["retransmit_delay_ms"], 84.5);
  EXPECT_EQ(totals["minute_undelivered"], 2);
  EXPECT_EQ(totals["peers_up"], 1);
  EXPECT_EQ(totals["paths"], 2);
  EXPECT_EQ(totals["active_paths"], 2);
  EXPECT_EQ(totals["flows"], 2);
}

TEST_F(LiveViewTest, ARestartOfTheDaemonGivesNoRates) {
  live.addStatus(status(100, 50));
  live.addStatus(status(102, 1));
  EXPECT_TRUE(live.view("")["paths"][0]["up_bytes_per_s"].is_null());
  live.addStatus(status(104, 3));
  EXPECT_EQ(live.view("")["paths"][0]["up_bytes_per_s"], 1500.0);
}

TEST_F(LiveViewTest, RatesAreOfNowAndNotOfTheTimeWhenNobodyLooked) {
  live.addStatus(status(100, 0));
  live.addStatus(status(130, 30));
  EXPECT_TRUE(live.view("")["paths"][0]["up_bytes_per_s"].is_null());
}

TEST_F(LiveViewTest, LossesAreOfTheLastMinute) {
  for (uint64_t s = 0; s <= 200; ++s)
    live.addStatus(status(100 + static_cast<double>(s), s < 120 ? 0 : s - 120));
  json path = live.view("")["paths"][0];
  EXPECT_EQ(path["lost_share"], 0.1);
  EXPECT_EQ(path["up_bytes_per_s"], 1500.0);
}

TEST_F(LiveViewTest, OfAPathThatIsDownNothingElseIsTold) {
  live.addStatus(status(100, 0));
  DaemonAnswer now = *status(102, 2);
  json& down = now.value["peers"][0]["subflows"][0];
  down["state"] = "failed";
  down["down_s"] = 15.5;
  live.addStatus(std::make_shared<const DaemonAnswer>(std::move(now)));
  json told = live.view(""), path = told["paths"][0];
  EXPECT_EQ(path["down_s"], 15.5);
  for (const char* name : {"srtt_ms", "min_rtt_ms", "queue_delay_ms", "lost_share",
                           "recovered_share", "up_bytes_per_s", "down_bytes_per_s"})
    EXPECT_TRUE(path[name].is_null()) << name;
  EXPECT_EQ(path["sent_bytes"], 3000) << "what it carried is as true as before";
  EXPECT_EQ(told["paths"][1]["lost_share"], 0.1);
  EXPECT_EQ(told["totals"]["minute_lost_packets"], 40) << "what was lost was lost";
}

TEST_F(LiveViewTest, AFailureIsToldAndTheNextAnswerCounts) {
  live.addStatus(status(100, 0));
  live.addStatus(
      std::make_shared<const DaemonAnswer>(DaemonAnswer{{}, {}, "no daemon answers", 101}));
  EXPECT_EQ(live.view("")["problem"], "no daemon answers");
  EXPECT_FALSE(live.view("").contains("paths"));
  live.addStatus(status(103, 3));
  EXPECT_TRUE(live.view("")["problem"].is_null());
  EXPECT_EQ(live.view("")["paths"][0]["up_bytes_per_s"], 1500.0);
}

TEST_F(LiveViewTest, FlowsComeByTheirRate) {
  gateway.flows = 200;
  live.addStatus(status(100, 0));
  live.addFlows(flows(100, 0));
  live.addFlows(flows(102, 2));
  json told = live.view("")["flows"];
  ASSERT_EQ(told.size(), LiveView::kFlows);
  EXPECT_EQ(told[0]["up_bytes_per_s"], 200.0);
  EXPECT_EQ(told[0]["peer"], "hub");
  EXPECT_EQ(told.back()["up_bytes_per_s"], 200.0 - LiveView::kFlows + 1);
}

TEST_F(LiveViewTest, FlowsAndStreamsAreOneListAndIdleOnesAreApart) {
  auto look = [&](double at, uint64_t times) {
    DaemonAnswer out = *flows(at, times);
    json& peer = out.value["peers"][0];
    peer["streams"] = {{{"name", "tcp 10.0.0.7:80 > 10.0.0.2:9"},
                        {"state", "open"},
                        {"idle_s", 0},
                        {"sent_bytes", 10 * times},
                        {"received_bytes", 1000 * times}}};
    peer["flows"][0]["idle_s"] = 5;
    return std::make_shared<const DaemonAnswer>(std::move(out));
  };
  live.addStatus(status(100, 0));
  live.addFlows(look(100, 0));
  live.addFlows(look(102, 2));
  const json told = live.view("");
  ASSERT_EQ(told["flows"].size(), 2u);
  EXPECT_EQ(told["flows"][0]["delivery"], "stream, open");
  EXPECT_EQ(told["flows"][0]["down_bytes_per_s"], 1000.0);
  EXPECT_EQ(told["flows"][0]["up_bytes_per_s"], 10.0);
  EXPECT_FALSE(told["flows"][1].contains("down_bytes_per_s")) << "it is what this gateway sends";
  ASSERT_EQ(told["idle_flows"].size(), 1u);
  EXPECT_EQ(told["idle_flows"][0]["name"], "tcp 10.0.0.1:443 > 10.0.0.2:0");
  EXPECT_EQ(told["totals"]["idle"], 1);
  EXPECT_EQ(live.view("nobody")["totals"]["idle"], 0);
}

TEST_F(LiveViewTest, HostsHaveTheirNames) {
  TemporaryFolder folder;
  folder.write("leases", "1 02:07 10.0.0.1 laptop *\n");
  LiveView named(HostNames({{HostNames::Format::kDnsmasq, folder.file("leases")}}));
  named.addStatus(status(100, 0));
  named.addFlows(flows(100, 0));
  const json flow = named.view("")["flows"][0];
  EXPECT_EQ(flow["shown"], "tcp laptop:443 > 10.0.0.2:0");
  EXPECT_EQ(flow["name"], "tcp 10.0.0.1:443 > 10.0.0.2:0");
}

TEST_F(LiveViewTest, OfManyTheBusiestAreTold) {
  gateway.names.clear();
  for (int i = 0; i < 1000; ++i) gateway.names.push_back("edge" + std::to_string(i));
  auto busy = [&](double at, uint64_t times) {
    DaemonAnswer out = *status(at, 0);
    out.value["peers"][777]["sent_bytes"] = 10 * times;
    out.value["peers"][777]["subflows"][1]["sent_bytes"] = 10 * times;
    return std::make_shared<const DaemonAnswer>(std::move(out));
  };
  live.addStatus(busy(100, 0));
  live.addStatus(busy(102, 1));
  json view = live.view("");
  EXPECT_EQ(view["peers"].size(), LiveView::kPeers);
  EXPECT_EQ(view["paths"].size(), LiveView::kPaths);
  EXPECT_EQ(view["peer_count"], 1000);
  EXPECT_EQ(view["totals"]["paths"], 2000);
  auto is777 = [](const json& row) {
    return row.value("name", row.value("peer", "")) == "edge777";
  };
  EXPECT_EQ(std::count_if(view["peers"].begin(), view["peers"].end(), is777), 1);
  EXPECT_GE(std::count_if(view["paths"].begin(), view["paths"].end(), is777), 1);
  EXPECT_LT(view.dump().size(), 100'000u);
  json one = live.view("edge5");
  EXPECT_EQ(one["paths"].size(), 2u);
  EXPECT_EQ(one["totals"]["peers"], 1);
}

TEST_F(LiveViewTest, WhatIsDownIsToldButTakesNoMoreThanHalfOfThePlaces) {
  gateway.names.clear();
  for (int i = 0; i < 500; ++i) gateway.names.push_back("edge" + std::to_string(i));
  auto look = [&](double at, uint64_t times) {
    DaemonAnswer out = *status(at, times);
    for (int i = 200; i < 500; ++i) {
      json& peer = out.value["peers"][i];
      peer["up"] = i < 300;
      for (json& path : peer["subflows"]) path["state"] = "failed";
    }
    return std::make_shared<const DaemonAnswer>(std::move(out));
  };
  live.addStatus(look(100, 0));
  live.addStatus(look(102, 2));
  const json view = live.view("");
  auto count = [](const json& rows, auto is) {
    return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), is));
  };
  EXPECT_EQ(view["peers"].size(), LiveView::kPeers);
  EXPECT_EQ(count(view["peers"], [](const json& row) { return row["up"] == false; }),
            LiveView::kPeers / 2);
  EXPECT_EQ(view["paths"].size(), LiveView::kPaths);
  EXPECT_EQ(count(view["paths"], [](const json& row) { return row["state"] == "failed"; }),
            LiveView::kPaths / 2);
}

TEST_F(LiveViewTest, AnyAnswerIsTaken) {
  for (const char* text : {"null", "[]", R"({"peers":3})",
                           R"({"peers":[null,{"subflows":[5,{"id":{}}]}],"gateway":1})"}) {
    DaemonAnswer odd;
    odd.at = ++gateway.told;
    odd.value = json::parse(text);
    live.addStatus(std::make_shared<const DaemonAnswer>(odd));
    live.addFlows(std::make_shared<const DaemonAnswer>(odd));
    EXPECT_TRUE(live.view("")["problem"].is_null()) << text;
  }
}

}  // namespace
}  // namespace braid::live_view_test
