// sim_rate EXPERIMENT [--controller NAME]...: experiments of rate control in virtual time. Prints
// one JSON object per controller. See docs/evaluation.md.

#include <CLI/CLI.hpp>
#include <fstream>

#include "scheduler/path/path_scheduler.h"
#include "sim/program.h"
#include "sim/rate_experiments.h"
#include "tunnel/api/options.h"

int main(int argc, char** argv) {
  using namespace braid::sim;
  std::string name;
  std::string series;
  double interval = 0;
  std::vector<std::string> controllers;
  RateParams params;
  WanParams& wan = params.wan;
  CLI::App app("Runs experiments of rate control with Braid's own core in virtual time");
  std::vector<std::string> names(std::begin(braid::kControllerNames),
                                 std::end(braid::kControllerNames));
  app.add_option("experiment", name, listOf(rateExperiments()))->required();
  app.add_option("--controller", controllers, "rate control, one after the other")
      ->check(CLI::IsMember(names));
  app.add_option("--seed", params.seed, "of arrivals");
  app.add_option("--series", series,
                 "file for window, rate, RTT and queue over time, one JSON object a line");
  app.add_option("--interval", interval, "of the series, ms")->check(CLI::PositiveNumber);
  app.add_option("--gamma", params.amp.gamma, "AMP")->check(CLI::Range(1, 1000));
  app.add_option("--tau", params.amp.tau, "AMP")->check(CLI::Range(1, 1000));
  app.add_option("--beta", params.amp.beta, "AMP")->check(CLI::Range(2.0, 1000.0));
  app.add_option("--lia-beta", params.liaBeta, "LIA: a mark takes 1/beta of its window")
      ->check(CLI::Range(2.0, 1000.0));
  app.add_option("--cwnd-min", params.amp.minimumWindow, "AMP, datagrams")
      ->check(CLI::Range(1, 100));
  app.add_option("--rate", params.rate, "of every link, bit/s")->check(CLI::PositiveNumber);
  app.add_option("--rtt", params.rtt, "without queues, us")->check(CLI::PositiveNumber);
  app.add_option("--queue", params.queue, "of every port, packets")->check(CLI::PositiveNumber);
  app.add_option("--threshold", params.threshold, "K, packets")->check(CLI::PositiveNumber);
  app.add_option("--subflows", params.subflows, "of a multipath connection")
      ->check(CLI::Range(1, 16));
  app.add_option("--initial-window", params.initialWindow, "of a subflow, datagrams")
      ->check(CLI::Range(2, 1000));
  app.add_option("--min-rto", params.minRto, "least retransmission timeout, ms (TCP: 200)")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--senders", params.senders, "incast; sweep: connections")
      ->check(CLI::Range(1, 120));
  app.add_option("--bytes", params.bytes, "incast: of a flow")->check(CLI::PositiveNumber);
  app.add_option("--rounds", params.rounds, "incast")->check(CLI::PositiveNumber);
  app.add_option("--multipath", params.multipath, "syndrome: multipath connections")
      ->check(CLI::Range(1, 60));
  app.add_option("--singles", params.singles, "syndrome: DCTCP connections")
      ->check(CLI::Range(0, 60));
  app.add_option("--time", params.time, "syndrome, sweep, each phase of shifting; ms")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", wan.seconds, "all from bulk on: measured time")
      ->check(CLI::Range(1.0, 3600.0));
  app.add_option("--loss", wan.loss, "bulk, interactive: of WiFi, towards the client")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--jitter", wan.jitter, "bulk, interactive: of each path, a share of its RTT")
      ->check(CLI::Range(0.0, 10.0));
  app.add_option("--policy", wan.recovery, "all from bulk on: recovery policy");
  app.add_option("--scheduler", wan.scheduler, "all from bulk on: path scheduler")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(braid::kPathSchedulerNames),
                                                     std::end(braid::kPathSchedulerNames))));
  app.add_flag("--saturate", wan.saturate,
               "bulk, interactive: raw segments instead of an inner TCP");
  app.add_option("--buffer", wan.buffer, "cubic-share, converge: bandwidth-delay products")
      ->check(CLI::Range(0.05, 100.0));
  app.add_option("--rivals", wan.rivals, "cubic-share")->check(CLI::Range(1, 60));
  app.add_option("--rival", wan.rival, "cubic-share: their controller")
      ->check(CLI::IsMember(names));
  app.add_option("--order", wan.order, "cubic-share: when the controller begins")
      ->check(CLI::IsMember({"together", "first", "last"}));
  app.add_option("--policed-rate", wan.policedRate, "policer: bit/s")->check(CLI::PositiveNumber);
  app.add_option("--burst", wan.burstBytes, "policer: bytes")->check(CLI::Range(1500, 1 << 30));
  app.add_option("--queue-bytes", wan.queueBytes, "shallow: of the buffer")
      ->check(CLI::Range(3000, 1 << 30));
  CLI11_PARSE(app, argc, argv);
  return runProgram("sim_rate", [&] {
    const RateExperiment& experiment = byName(rateExperiments(), name);
    if (controllers.empty()) {
      controllers.push_back(experiment.controller ? experiment.controller
                                                  : braid::TunnelOptions{}.controller);
    }
    std::ofstream file;
    if (!series.empty()) {
      if (controllers.size() > 1) throw std::runtime_error("a series is of one controller");
      file.exceptions(std::ios::failbit | std::ios::badbit);
      file.open(series);
      params.series = {&file, braid::fromSeconds(interval / 1000)};
    }
    runEach(experiment, "controller", &RateParams::controller, controllers, params);
  });
}
