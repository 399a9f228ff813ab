// Plain TCP in the experiments that another simulator can check: results known from theory.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/tcp/tcp_experiments.h"

namespace braid::sim::tcp_test {
namespace {

Json run(const std::string& name, const TcpParams& params) {
  for (const TcpExperiment& e : tcpExperiments()) {
    if (e.name == name) return e.run(params);
  }
  throw std::invalid_argument(name);
}

TEST(PlainTcp, ALossyPathGivesWhatTheWindowOfItsLossRateCarries) {
  TcpParams p;
  p.seconds = 60;
  double mbps = run("lossy-path", p).at("goodput_mbps");
  // Mathis et al. 1997: sqrt(3/2) segments divided by the square root of the loss rate, per round
  // trip.
  double model = std::sqrt(1.5 / 0.01) * 1448 * 8e-6 / 0.040;
  EXPECT_GT(mbps, 0.8 * model);
  EXPECT_LT(mbps, 1.1 * model);
}

TEST(PlainTcp, ALosslessPathIsFull) {
  TcpParams p;
  p.loss = 0;
  p.seconds = 10;
  double mbps = run("lossy-path", p).at("goodput_mbps");
  EXPECT_GT(mbps, 0.95 * 10 * 1448 / 1500);
  p.timestamps = false;
  EXPECT_GT(double(run("lossy-path", p).at("goodput_mbps")), mbps)
      << "12 bytes of each segment more";
}

// FUSO section II-B: a close lower bound.
TEST(PlainTcp, TimeoutsAreWhatTheClosedFormSays) {
  TcpParams p;
  p.recovery = "tcp";
  p.minRto = 5;
  p.delayedAcks = false;
  p.bytes = 10'000;
  p.loss = 0.05;
  p.flows = 3000;
  Json one = run("timeouts", p);
  double expected = one["closed_form"], measured = one["timeout_share"];
  EXPECT_NEAR(expected, 0.05 + 1 - std::pow(1 - 0.05 * 0.05, 6), 1e-9);
  EXPECT_GT(measured, 0.8 * expected);
  EXPECT_LT(measured, 1.5 * expected);
  p.paths = 3;
  EXPECT_LT(run("timeouts", p)["timeout_share"], 0.5 * measured);
  p.loss = 0;
  EXPECT_EQ(run("timeouts", p)["timed_out"], 0);
}

TEST(PlainTcp, DctcpsQueueIsAboutTheThresholdAndTheLinkIsFull) {
  for (size_t threshold : {20, 40}) {
    TcpParams p;
    p.control = "dctcp";
    p.seconds = 0.2;
    p.threshold = threshold;
    Json j = run("dctcp-queue", p);
    auto k = static_cast<double>(threshold);
    EXPECT_NEAR(double(j.at("queue_mean")), k, 0.3 * k);
    EXPECT_LT(double(j.at("queue_p99")), 1.5 * k);
    EXPECT_GT(double(j.at("throughput_mbps")), 0.99 * 1000 * 1448 / 1500);
    EXPECT_EQ(j.at("dropped"), 0);
  }
}

TEST(PlainTcp, IncastTakesTheTimeOfItsBytesUnlessItTimesOut) {
  TcpParams p;
  p.rounds = 2;
  p.control = "dctcp";
  double line = 20 * std::ceil((64 << 10) / 1448.0) * 1500 * 8e-6;  // ms at 1 Gbit/s
  Json dctcp = run("incast", p);
  EXPECT_EQ(dctcp.at("timeouts"), 0);
  EXPECT_GT(double(dctcp.at("completion_ms")), 0.95 * line);
  EXPECT_LT(double(dctcp.at("completion_ms")), 1.2 * line);
  p.control = "newreno";
  p.senders = 40;
  Json reno = run("incast", p);
  EXPECT_GT(int(reno.at("timeouts")), 0);
  EXPECT_GT(double(reno.at("completion_max_ms")), 200) << "the least timeout";
  p.minRto = 5;
  EXPECT_LT(double(run("incast", p).at("completion_ms")), 100);
}

/// The links that a flow's data passes, or its ACKs, by name.
std::set<std::string> linksOf(const Json& route, bool acks = false) {
  constexpr int kHostsOfEdge = 2, kHostsOfPod = 4;
  int from = route.at(acks ? "to" : "from"), to = route.at(acks ? "from" : "to");
  std::string back = acks ? "back_" : "";
  std::set<std::string> links{"from host " + std::to_string(from), "to host " + std::to_string(to)};
  if (!route.contains("aggregation")) return links;
  std::string aggregation = " by " + route.at(back + "aggregation").dump();
  links.insert("from edge " + std::to_string(from / kHostsOfEdge) + aggregation);
  links.insert("to edge " + std::to_string(to / kHostsOfEdge) + aggregation);
  if (!route.contains("core")) return links;
  std::string core = aggregation + " and core " + route.at(back + "core").dump();
  links.insert("from pod " + std::to_string(from / kHostsOfPod) + core);
  links.insert("to pod " + std::to_string(to / kHostsOfPod) + core);
  return links;
}

TEST(PlainTcp, APermutationsFlowsShareTheLinksThatTheirRoutesName) {
  constexpr double kRate = 1000, kPayload = 1448, kPacket = 1500, kAckBytes = 52,
                   kAckEvery = 2;  // Mbit/s, bytes
  constexpr double kLine = kRate * kPayload / kPacket;
  for (const char* control : {"newreno", "dctcp"}) {
    TcpParams p;
    p.control = control;
    p.minRto = 10;
    p.seconds = 0.2;
    Json j = run("permutation", p);
    auto goodput = j.at("goodput_mbps").get<std::vector<double>>();
    ASSERT_EQ(goodput.size(), 16u);
    std::map<std::string, double> load, ackLoad;
    std::map<std::string, int> flows;
    std::set<int> receivers;
    for (const Json& route : j.at("routes")) {
      EXPECT_NE(route.at("from"), route.at("to"));
      receivers.insert(int(route.at("to")));
      EXPECT_EQ(route.contains("back_core"), route.contains("core"));
      for (const std::string& link : linksOf(route)) {
        load[link] += goodput.at(size_t(route.at("from")));
        ++flows[link];
      }
      double acks = goodput.at(size_t(route.at("from"))) / (kAckEvery * kPayload) * kAckBytes;
      for (const std::string& link : linksOf(route, true)) ackLoad[link] += acks;
    }
    EXPECT_EQ(receivers.size(), 16u);
    size_t alone = 0;
    for (const Json& route : j.at("routes")) {
      bool shares = false;
      double acks = 0;  // number of other flows, on the link that has most of them
      for (const std::string& link : linksOf(route)) {
        shares |= flows[link] > 1;
        acks = std::max(acks, ackLoad[link]);
      }
      alone += !shares;
      if (!shares) {
        EXPECT_GT(goodput.at(size_t(route.at("from"))), 0.98 * (kRate - acks) * kPayload / kPacket)
            << route;
      }
    }
    EXPECT_GT(alone, 0u);
    EXPECT_LT(alone, 16u) << "nothing was shared, so nothing was looked at";
    for (const auto& [link, mbps] : load) EXPECT_LT(mbps, 1.01 * kLine) << link;
  }
}

}  // namespace
}  // namespace braid::sim::tcp_test
