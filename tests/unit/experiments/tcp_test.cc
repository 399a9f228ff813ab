// Plain TCP in the experiments that another simulator can check: figures that theory gives.

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "sim/tcp_experiments.h"

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
  // Mathis et al. 1997: sqrt(3/2) segments over the root of the loss rate, each round trip.
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
  EXPECT_GT(double(run("lossy-path", p).at("goodput_mbps")), mbps) << "12 bytes of each segment more";
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

}  // namespace
}  // namespace braid::sim::tcp_test
