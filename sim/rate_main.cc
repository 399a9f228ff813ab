// sim_rate EXPERIMENT [--controller NAME]...: AMP's experiments in virtual time. Prints one JSON object a
// controller. See docs/evaluation.md.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "rate_experiments.h"

namespace {

using namespace braid::sim;

int runAll(const std::string& name, const std::vector<std::string>& controllers, RateParams params) {
  for (const RateExperiment& experiment : rateExperiments()) {
    if (name != experiment.name) continue;
    for (const std::string& controller : controllers) {
      params.controller = controller;
      Json line = {{"experiment", name}, {"controller", controller}, {"seed", params.seed}};
      line.update(experiment.run(params));
      std::cout << line.dump() << std::endl;
    }
    return 0;
  }
  throw std::runtime_error("no experiment " + name);
}

}  // namespace

int main(int argc, char** argv) {
  std::string name;
  std::vector<std::string> controllers{"amp"};
  RateParams params;
  CLI::App app("Runs the experiments of AMP with Braid's own core in virtual time");
  std::string list = "one of:";
  for (const RateExperiment& e : rateExperiments()) list += std::string("\n  ") + e.name + ": " + e.what;
  std::vector<std::string> names(std::begin(braid::kControllerNames), std::end(braid::kControllerNames));
  app.add_option("experiment", name, list)->required();
  app.add_option("--controller", controllers, "rate control, one after the other")
      ->check(CLI::IsMember(names));
  app.add_option("--seed", params.seed, "of arrivals");
  app.add_option("--gamma", params.amp.gamma, "AMP")->check(CLI::Range(1, 1000));
  app.add_option("--tau", params.amp.tau, "AMP")->check(CLI::Range(1, 1000));
  app.add_option("--beta", params.amp.beta, "AMP")->check(CLI::Range(2.0, 1000.0));
  app.add_option("--cwnd-min", params.amp.minimumWindow, "AMP, datagrams")->check(CLI::Range(1, 100));
  app.add_option("--rate", params.rate, "of every link, bit/s")->check(CLI::PositiveNumber);
  app.add_option("--rtt", params.rtt, "without queues, us")->check(CLI::PositiveNumber);
  app.add_option("--queue", params.queue, "of every port, packets")->check(CLI::PositiveNumber);
  app.add_option("--threshold", params.threshold, "K, packets")->check(CLI::PositiveNumber);
  app.add_option("--subflows", params.subflows, "of a multipath connection")->check(CLI::Range(1, 16));
  app.add_option("--initial-window", params.initialWindow, "of a subflow, datagrams")
      ->check(CLI::Range(2, 1000));
  app.add_option("--min-rto", params.minRto, "least retransmission timeout, ms (TCP: 200)")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--senders", params.senders, "incast; sweep: connections")->check(CLI::Range(1, 120));
  app.add_option("--bytes", params.bytes, "incast: of a flow")->check(CLI::PositiveNumber);
  app.add_option("--rounds", params.rounds, "incast")->check(CLI::PositiveNumber);
  app.add_option("--multipath", params.multipath, "syndrome: multipath connections")
      ->check(CLI::Range(1, 60));
  app.add_option("--singles", params.singles, "syndrome: DCTCP connections")->check(CLI::Range(0, 60));
  app.add_option("--time", params.time, "syndrome, sweep, each phase of shifting; ms")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return runAll(name, controllers, params);
  } catch (const std::exception& e) {
    std::cerr << "sim_rate: " << e.what() << "\n";
    return 1;
  }
}
