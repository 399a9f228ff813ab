// Each experiment once, as short as it gets, for builds with sanitizers. The programs' own smoke tests, in the
// optimised build, have more policies and look at the figures and at the same seed's giving the same again.

#include <gtest/gtest.h>

#include "sim/experiment.h"
#include "sim/rack_experiments.h"
#include "sim/rate_experiments.h"
#include "sim/tcp_experiments.h"

namespace braid::sim::smoke_test {
namespace {

TEST(Smoke, ExperimentsOfRecovery) {
  Params params;
  params.policy = "cofuso";
  params.flows = 2;
  params.senders = 6;
  for (const Experiment& experiment : experiments()) {
    EXPECT_GT(experiment.run(params).at("sent"), 0) << experiment.name;
  }
}

TEST(Smoke, ExperimentsOfRateControl) {
  RateParams params;
  params.senders = 3;
  params.rounds = 1;
  params.time = 2;
  params.wan.seconds = 1;
  for (const RateExperiment& experiment : rateExperiments()) {
    params.controller = experiment.controller ? experiment.controller : TunnelOptions{}.controller;
    EXPECT_FALSE(experiment.run(params).empty()) << experiment.name;
  }
}

TEST(Smoke, ExperimentsOfTheRacks) {
  RackParams params;
  params.shim = "both";
  params.scheme = "dctcp";
  params.large = true;
  params.rounds = 1;
  params.seconds = 1;
  for (const RackExperiment& experiment : rackExperiments()) {
    EXPECT_FALSE(experiment.run(params).empty()) << experiment.name;
  }
}

TEST(Smoke, ExperimentsOfPlainTcp) {
  TcpParams params;
  params.control = "dctcp";
  params.rounds = 1;
  params.seconds = 0.2;
  for (const TcpExperiment& experiment : tcpExperiments()) {
    EXPECT_FALSE(experiment.run(params).empty()) << experiment.name;
  }
}

}  // namespace
}  // namespace braid::sim::smoke_test
