// Runs each experiment once, as short as possible, for builds with sanitizers. Its results must be
// within the limits in evaluation/smoke.txt. The programs' own smoke tests in the optimised build
// run more policies, and check that the same seed gives the same results.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include "evaluation/fabric/fabric_experiments.h"
#include "evaluation/racks/rack_experiments.h"
#include "evaluation/rate/rate_experiments.h"
#include "evaluation/recovery/recovery_experiments.h"
#include "evaluation/tcp/tcp_experiments.h"

namespace braid::sim::smoke_test {
namespace {

void expectSound(const std::string& group, const std::string& experiment, const Json& figures) {
  std::ifstream file(BRAID_SMOKE);
  std::string line;
  size_t looked = 0;
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string of, name, field;
    double least = 0, most = 0;
    if (!(row >> of >> name >> field >> least >> most) || of != group) continue;
    if (name != "*" && name != experiment) continue;
    ++looked;
    std::ranges::replace(field, '.', '/');
    Json::json_pointer place("/" + field);
    ASSERT_TRUE(figures.contains(place)) << experiment << " " << field << figures;
    auto value = figures.at(place).get<double>();
    EXPECT_GE(value, least) << experiment << " " << field << figures;
    EXPECT_LE(value, most) << experiment << " " << field << figures;
  }
  EXPECT_GT(looked, 0u) << "evaluation/smoke.txt says nothing of " << experiment;
}

TEST(Smoke, ExperimentsOfRecovery) {
  Params params;
  params.policy = "cofuso";
  params.flows = 2;
  params.senders = 6;
  for (const Experiment& experiment : experiments())
    expectSound("recovery", experiment.name, experiment.run(params));
}

TEST(Smoke, ExperimentsOfRateControl) {
  constexpr double kSharedLink = 50;  // Mbit/s, of cubic-share and converge
  RateParams params;
  params.senders = 3;
  params.rounds = 1;
  params.time = 2;
  params.wan.seconds = 1;
  for (const RateExperiment& experiment : rateExperiments()) {
    params.controller = experiment.controller ? experiment.controller : TunnelOptions{}.controller;
    Json figures = experiment.run(params);
    expectSound("rate", experiment.name, figures);
    if (!figures.contains("mbit")) continue;
    auto rates = figures["mbit"].get<std::vector<double>>();
    double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
    EXPECT_LE(sum, kSharedLink) << experiment.name;
    EXPECT_GE(sum, 0.7 * kSharedLink) << experiment.name;
    EXPECT_DOUBLE_EQ(figures["jain"].get<double>(), jain(rates)) << experiment.name;
  }
}

TEST(Smoke, ExperimentsOfTheRacks) {
  RackParams params;
  params.shim = "both";
  params.scheme = "dctcp";
  params.large = true;
  params.rounds = 1;
  params.seconds = 1;
  params.time = 1;
  params.hostsPerLeaf = 4;
  params.requests = 5;
  RackTreeOptions tree = treeOf(params);
  double ideal = toSeconds(tree.rtt) + static_cast<double>(params.bytes) * 8 / tree.rate;
  for (const RackExperiment& experiment : rackExperiments()) {
    Json figures = experiment.run(params);
    expectSound("racks", experiment.name, figures);
    EXPECT_LE(figures["dropped"], figures["packets"]) << experiment.name;
    EXPECT_LE(figures["marked"], figures["packets"]) << experiment.name;
    if (figures.contains("mean_all")) {
      EXPECT_LE(figures["mean_small"], figures["mean_all"]);
    }
    if (!figures.contains("times")) continue;
    for (double seconds : figures["times"].get<std::vector<double>>()) EXPECT_GE(seconds, ideal);
  }
}

TEST(Smoke, ExperimentsOfTheFabric) {
  FabricParams params;
  params.k = 4;
  params.time = params.warmUp = 1;
  params.lossyShare = 0;
  params.flows = 20;
  for (const FabricExperiment& experiment : fabricExperiments()) {
    params.scheme = std::string(experiment.name) == "together" ? "together" : FabricParams{}.scheme;
    params.load = 0.2;
    params.most = 10'000'000;
    Json figures = experiment.run(params);
    expectSound("fabric", experiment.name, figures);
    if (!figures.contains("layers")) continue;
    for (const Json& layer : figures["layers"])
      EXPECT_LE(layer["use_mean"], layer["use_p90"].get<double>() + 1e-9);
  }
}

TEST(Smoke, ExperimentsOfPlainTcp) {
  TcpParams params;
  params.flows = 50;
  params.control = "dctcp";
  params.rounds = 1;
  params.senders = 3;
  params.seconds = 0.5;
  for (const TcpExperiment& experiment : tcpExperiments())
    expectSound("tcp", experiment.name, experiment.run(params));
}

}  // namespace
}  // namespace braid::sim::smoke_test
