// The parts of AMP's experiments, and results that must hold for any parameters.

#include <gtest/gtest.h>

#include <array>

#include "evaluation/models/raw_flows.h"
#include "evaluation/rate/rate_experiments.h"

namespace braid::sim::rate_test {
namespace {

Json run(const char* name, const RateParams& params) {
  for (const RateExperiment& e : rateExperiments()) {
    if (e.name == std::string_view(name)) return e.run(params);
  }
  throw std::invalid_argument(name);
}

TEST(Jain, Index) {
  EXPECT_EQ(jain({}), 1);
  EXPECT_DOUBLE_EQ(jain(std::array{3.0, 3.0, 3.0}), 1);
  EXPECT_DOUBLE_EQ(jain(std::array{1.0, 0.0, 0.0, 0.0}), 0.25);
  EXPECT_DOUBLE_EQ(jain(std::array{1.0, 3.0}), 0.8);  // 16 / (2 * 10)
}

TEST(Saturation, FillsTheLinkUntilItIsStopped) {
  RateParams params;
  params.rate = 1e9;
  ManyToOne fabric(params);
  Network::Pair pair = fabric.add("dctcp");
  fabric.network.start();
  World& world = fabric.network.world;
  auto& flow = world.add<Saturation>(*pair.client, *pair.server, 1000, segmentSize(*pair.server));
  world.run(20ms);
  uint64_t before = flow.received();
  world.run(10ms);
  double rate = static_cast<double>(flow.received() - before) * 8 / 0.01;
  EXPECT_GT(rate, 0.9e9);
  EXPECT_LT(rate, 1e9);
  flow.stop();
  world.run(20ms);
  uint64_t rest = flow.received();
  world.run(20ms);
  EXPECT_EQ(flow.received(), rest);
}

TEST(Fabric, MarksAboveTheThresholdAndDropsNothing) {
  RateParams params;
  params.time = 20;
  Json j = run("syndrome", params);
  EXPECT_EQ(j["lost"], 0);
  EXPECT_GT(j["queue"]["median"], 2);
  EXPECT_LT(j["queue"]["max"], 40);
}

TEST(Incast, AmpGoesOnWithOneSubflowAndTheOthersDoNot) {
  RateParams params;
  params.rounds = 1;
  Json amp = run("incast", params);
  params.controller = "dcm";
  Json dcm = run("incast", params);
  EXPECT_GT(amp["suppressions"], 20);
  EXPECT_EQ(amp["timeouts"], 0);
  EXPECT_EQ(dcm["suppressions"], 0);
  EXPECT_GT(dcm["timeouts"], 0);
}

TEST(Syndrome, AmpSharesFairlyWhereItsRivalsDoNot) {
  RateParams params;
  params.singles = 16;
  params.time = 30;
  EXPECT_GT(run("syndrome", params)["jain"], 0.95);
  params.controller = "xmp";
  EXPECT_LT(run("syndrome", params)["jain"], 0.85);
}

TEST(Sweep, AnIdleFabricSuppressesNobody) {
  RateParams params;
  params.senders = 1;
  params.time = 20;
  EXPECT_EQ(run("sweep", params)["episodes_max"], 0);
}

}  // namespace
}  // namespace braid::sim::rate_test
