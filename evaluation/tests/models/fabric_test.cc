#include "evaluation/fabric/fabric_experiments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/models/traffic.h"
#include "evaluation/racks/rack_experiments.h"

namespace braid::fabric_experiments_test {
namespace {

using namespace sim;

FabricParams small() {
  FabricParams p;
  p.k = 4;
  p.time = p.warmUp = 1;
  return p;
}

// No port carries more than its rate, the queues stay near K, and all hosts get a share.
TEST(Permutation, FillsAFatTreeWithoutLosses) {
  Json j = runPermutation(small());
  EXPECT_EQ(j["hosts"], 16);
  EXPECT_GT(j["goodput_mbps"], 4000);  // hashing leaves some paths unused
  EXPECT_GT(j["jain"], 0.85);
  for (const char* layer : {"access", "aggregation", "core"}) {
    const Json& l = j["layers"][layer];
    EXPECT_GT(l["use_mean"], 0.3) << layer;
    EXPECT_LE(l["use_p90"], 1.001) << layer;
    EXPECT_EQ(l["dropped"], 0) << layer;
  }
}

TEST(Permutation, IsAMatterOfItsSeed) {
  FabricParams p = small();
  p.time = 0.2;
  Json one = runPermutation(p), again = runPermutation(p);
  p.seed = 2;
  EXPECT_EQ(one["hash"], again["hash"]);
  EXPECT_NE(one["hash"], runPermutation(p)["hash"]);
}

// AMP's figure 14: the runs differ only in what carries the long flows.
TEST(Mining, OnlyTheLongFlowsDependOnTheController) {
  FabricParams p = small();
  p.time = 4;
  p.most = 300'000;
  Json amp = runMining(p);
  p.controller = "dctcp";
  p.subflows = 1;
  Json dctcp = runMining(p);
  for (const Json& j : {amp, dctcp}) {
    EXPECT_EQ(j["short"]["incomplete"], 0);
    uint64_t count = j["long"]["count"], bytes = j["long"]["bytes"], open = j["long"]["open"];
    EXPECT_GT(count, 1u);
    EXPECT_LT(open, count);
    EXPECT_GE(bytes, (count - open) * 100'000);
    EXPECT_LT(bytes, count * 302'000) << "the last segment of each may be longer than what is left";
    EXPECT_GT(j["short"]["p50"], 12e-6);  // a handshake and half a round trip within a rack
  }
  EXPECT_EQ(amp["short"]["count"], dctcp["short"]["count"]);
  EXPECT_EQ(amp["long"]["count"], dctcp["long"]["count"]);
  double flows = amp["short"]["count"].get<double>() + amp["long"]["count"].get<double>();
  EXPECT_NEAR(flows, 16 * 4 / 0.78, 4 * std::sqrt(16 * 4 / 0.78));  // Poisson: four deviations
  EXPECT_NE(amp["hash"], dctcp["hash"]);
  EXPECT_EQ(dctcp["hash"], runMining(p)["hash"]);
}

RackParams racks() {
  RackParams p;
  p.hostsPerLeaf = 4;
  p.load = 0.2;
  p.time = 10;
  p.most = 1 << 20;
  return p;
}

TEST(LeafSpine, AllFlowsEndAndNoneBeforeItCan) {
  for (const char* scheme : {"droptail", "red-ecn", "dctcp"}) {
    RackParams p = racks();
    p.scheme = scheme;
    Json j = runLeafSpine(p);
    EXPECT_EQ(j["hosts"], 36) << scheme;
    EXPECT_GT(j["flows"], 50) << scheme;
    EXPECT_EQ(j["incomplete"], 0) << scheme;
    EXPECT_GE(j["p50_small"], 200e-6) << scheme;  // half an RTT across the spine
    EXPECT_LT(j["p50_small"], 5e-3) << scheme;
  }
}

// Section V-B's result in a small network: the shim avoids timeouts of small flows.
TEST(LeafSpine, TheShimSparesSmallFlowsTheirTimeouts) {
  RackParams p = racks();
  p.hostsPerLeaf = 20;
  p.load = 0.6;
  p.most = 1 << 30;
  Json off = runLeafSpine(p);
  p.shim = "sender";
  Json on = runLeafSpine(p);
  ASSERT_GT(off["timeouts_small"], 0);
  EXPECT_LT(on["timeouts_small"], off["timeouts_small"]);
  EXPECT_LT(on["mean_small"], off["mean_small"]);
}

RackParams cluster() {
  RackParams p;
  p.hostsPerLeaf = 6;
  p.requests = 30;
  p.most = 3'000'000;
  p.recovery = "tlp";
  return p;
}

TEST(Cluster, AllRequestsAreAnsweredAndNoneBeforeItCan) {
  for (const char* control : {"newreno", "cubic", "dctcp"}) {
    RackParams p = cluster();
    p.control = control;
    Json j = runCluster(p);
    EXPECT_EQ(j["flows"], 6 * 30) << control;
    EXPECT_EQ(j["incomplete"], 0) << control;
    EXPECT_GE(j["p50_small"], 250e-6) << control;
    EXPECT_LT(j["p50_small"], 20e-3) << control;
    EXPECT_EQ(j["marked"] > 0, p.control == "dctcp");
  }
}

TEST(Cluster, BackgroundTakesWhatRequestsNeedAndTheShimActs) {
  RackParams p = cluster();
  p.requests = 10;
  Json alone = runCluster(p);
  p.background = true;
  Json beside = runCluster(p);
  EXPECT_EQ(beside["flows"], alone["flows"]);
  EXPECT_GT(beside["dropped"], alone["dropped"]);
  EXPECT_GT(beside["mean_small"], alone["mean_small"]);
  EXPECT_EQ(beside["actuators"]["fired"], 0);
  p.shim = "sender";
  EXPECT_GT(runCluster(p)["actuators"]["fired"], 0);
}

TEST(Cluster, InAllToAllAllAreClients) {
  RackParams p = cluster();
  p.everyone = true;
  Json j = runCluster(p);
  EXPECT_EQ(j["flows"], 24 * 30);
  EXPECT_EQ(j["incomplete"], 0);
}

// FUSO's fig. 1, over many draws.
TEST(LossyCables, LieAndLoseAsFusoMeasured) {
  Topology topology = Pods::fuso().build();
  std::map<std::string, int> layers;
  int all = 0, low = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::vector<std::pair<size_t, double>> lossy = lossyCables(topology, 0.05, seed);
    ASSERT_EQ(lossy.size(), 10u);  // 5 of 96 cables, both directions
    for (size_t i = 0; i < lossy.size(); i += 2) {
      auto [cable, rate] = lossy[i];
      const Topology::Cable &one = topology.cables()[cable],
                            &back = topology.cables()[lossy[i + 1].first];
      ASSERT_TRUE(one.from == back.to && one.to == back.from);
      ASSERT_EQ(rate, lossy[i + 1].second);
      ASSERT_TRUE(rate >= 0.01 && rate <= 0.6) << rate;
      ++layers[one.layer];
      ++all;
      low += rate <= 0.1;
    }
  }
  EXPECT_NEAR(layers["access"] * 1.0 / all, 0.22, 0.015);
  EXPECT_NEAR(layers["aggregation"] * 1.0 / all, 0.24, 0.015);
  EXPECT_NEAR(layers["core"] * 1.0 / all, 0.54, 0.015);
  EXPECT_NEAR(low * 1.0 / all, 63.0 / 78, 0.015);
}

TEST(LossyCables, RatesHaveTheSharesOfFusosFigure) {
  FabricParams p;
  p.blackHoles = true;
  p.flows = 20'000;
  p.lossyShare = 0.05;
  Json all = runLossyLinks(p);
  EXPECT_NEAR(all["low"], 0.63, 0.02);
  EXPECT_NEAR(all["high"], 0.22, 0.02);
  p.blackHoles = false;
  Json simulated = runLossyLinks(p);
  EXPECT_EQ(simulated["high"], 0);
  EXPECT_NEAR(simulated["low"], 63.0 / 78, 0.02);
  EXPECT_LT(simulated["mean"], all["mean"]);
}

TEST(Pods, TheSchemeMattersAndNothingElse) {
  FabricParams p;
  p.time = 2;
  p.scheme = "tcp";
  Json tcp = runPods(p);
  p.scheme = "fuso";
  Json fuso = runPods(p);
  for (const char* same : {"flows", "small"}) EXPECT_EQ(tcp[same], fuso[same]);
  EXPECT_GT(tcp["lost"], 0);
  EXPECT_EQ(tcp["tunnel_timeouts"], 0);
  EXPECT_EQ(fuso["hash"], runPods(p)["hash"]);
  EXPECT_NE(fuso["hash"], tcp["hash"]);
}

TEST(Sizes, TheMeanIsThatOfItsDraws) {
  for (const char* name : {"web_search", "data_mining", "web_server"}) {
    Sizes sizes = namedSizes(name);
    for (uint64_t most : {20'000u, 1'000'000u}) {
      Random random(3);
      double sum = 0;
      constexpr int kDraws = 200'000;
      for (int i = 0; i < kDraws; ++i) sum += static_cast<double>(sizes.draw(random, most));
      EXPECT_NEAR(sum / kDraws / sizes.mean(most), 1, 0.02) << name << " " << most;
    }
  }
}

FabricParams together(const std::string& scheme) {
  FabricParams p;
  p.scheme = scheme;
  p.load = 0.3;
  p.time = 2;
  p.most = 1'000'000;
  return p;
}

// All schemes get the same requests and answer all of them. Without loss or congestion TCP has no
// timeouts.
TEST(Together, AllSchemesAnswerTheSameRequests) {
  std::vector<std::string> schemes = togetherSchemes();
  ASSERT_EQ(schemes.size(), 9u);
  Json first;
  for (const std::string& scheme : schemes) {
    SCOPED_TRACE(scheme);
    FabricParams p = together(scheme);
    p.lossyShare = 0;
    p.load = 0.02;
    p.most = 100'000;
    Json j = runTogether(p);
    if (first.is_null()) first = j;
    EXPECT_EQ(j["flows"], first["flows"]);
    EXPECT_EQ(j["small"], first["small"]);
    EXPECT_EQ(j["incomplete"], 0);
    EXPECT_EQ(j["lost"], 0);
    EXPECT_EQ(j["timeouts"], 0);
    EXPECT_GE(j["p50_small"], 2 * 4 * 20e-6)
        << "two hops there and back within a rack, and the request";
  }
}

TEST(Together, TheFanOutAsksSoManyAtOnce) {
  FabricParams p = together("tcp");
  uint64_t without = runTogether(p)["flows"];
  p.fanOut = 20;
  EXPECT_EQ(runTogether(p)["flows"], without + 20) << "once in the first 5 ms";
}

// A tunnel repairs losses before TCP's timer of 200 ms.
TEST(Together, ATunnelKeepsTheTimersStill) {
  FabricParams p = together("tcp");
  p.lossyShare = 0.3;
  Json alone = runTogether(p);
  EXPECT_GT(alone["timeouts"], 0);
  p.scheme = "together";
  Json all = runTogether(p);
  EXPECT_EQ(all["timeouts"], 0);
  EXPECT_LT(all["p99_small"], alone["p99_small"]);
}

}  // namespace
}  // namespace braid::fabric_experiments_test
