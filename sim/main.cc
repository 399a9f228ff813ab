// sim_recovery EXPERIMENT [--policy NAME]...: the papers' experiments in virtual time. Prints one
// JSON object per policy. See docs/evaluation.md.

#include <CLI/CLI.hpp>

#include "scheduler/path/path_scheduler.h"
#include "scheduler/rate/controller.h"
#include "scheduler/recovery/recovery.h"
#include "sim/experiment.h"
#include "sim/program.h"

int main(int argc, char** argv) {
  using namespace braid::sim;
  std::string name;
  std::vector<std::string> policies{"adaptive"};
  Params params;
  CLI::App app("Runs the experiments of FUSO and CoFUSO with Braid's own core in virtual time");
  app.add_option("experiment", name, listOf(experiments()))->required();
  app.add_option("--policy", policies, "recovery policies, one after the other")
      ->check([](const std::string& policy) {
        return braid::makeRecoveryPolicy(policy, {}, 0) ? std::string() : "no policy " + policy;
      });
  app.add_option("--seed", params.seed, "of losses, sizes, routes and arrivals");
  app.add_option("--flows", params.flows, "how many flows (incast: rounds, bulk: seconds)");
  app.add_option("--loss", params.loss, "share of packets lost on the lossy links")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--burst", params.burst, "mean run of losses, packets")
      ->check(CLI::Range(1.0, 1000.0));
  app.add_option("--subflows", params.subflows, "fabric, timeouts, incast, routers")
      ->check(CLI::Range(1, 16));
  app.add_option("--controller", params.controller, "instead of the experiment's own")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(braid::kControllerNames),
                                                     std::end(braid::kControllerNames))));
  app.add_option("--scheduler", params.scheduler, "earliest, ecf or minrtt")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(braid::kPathSchedulerNames),
                                                     std::end(braid::kPathSchedulerNames))));
  app.add_option("--min-rto", params.minRto,
                 "least retransmission timeout of every policy, ms (Linux: 200)")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_flag("--testbed", params.testbed,
               "cofuso with K_max 30, M_max 1, alpha1 0.05, beta1 0.95 (section 5.2)");
  app.add_option("--m-max", params.mMax, "most parities of a block")->check(CLI::Range(1, 16));
  app.add_option("--coding-rate", params.codingRate,
                 "cofuso: parities for each packet, fixed; 0: by the loss rate")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--sizes", params.sizes, "distribution of flow sizes, a name in sim/data");
  app.add_option("--max-bytes", params.maxBytes, "largest flow")->check(CLI::PositiveNumber);
  app.add_option("--senders", params.senders, "incast")->check(CLI::Range(1, 120));
  app.add_flag("--warm", params.warm,
               "responses, routers: all flows in one tunnel, with the product's controller");
  app.add_flag("--edge", params.edge, "fabric: the clients' access links lose instead of path P1");
  app.add_flag("--alone", params.alone, "mice: without the elephant");
  CLI11_PARSE(app, argc, argv);
  return runProgram("sim_recovery", [&] {
    runEach(byName(experiments(), name), "policy", &Params::policy, policies, params);
  });
}
