// sim_fabric EXPERIMENT [--controller NAME]...: the papers' experiments on networks of many
// switches. Prints one JSON object per controller. See docs/evaluation.md.

#include <CLI/CLI.hpp>

#include "sim/fabric_experiments.h"
#include "sim/program.h"
#include "sim/scheme_traffic.h"

int main(int argc, char** argv) {
  using namespace braid::sim;
  std::string name;
  std::vector<std::string> controllers, schemes;
  FabricParams params;
  CLI::App app("Runs experiments on networks of many switches with Braid's core in virtual time");
  app.add_option("experiment", name, listOf(fabricExperiments()))->required();
  app.add_option("--controller", controllers, "one after the other");
  std::vector<std::string> known = togetherSchemes();
  known.insert(known.end(), trafficSchemes().begin(), trafficSchemes().end());
  app.add_option("--scheme", schemes, "what carries the flows, one after the other")
      ->check(CLI::IsMember(known));
  app.add_option("--sizes", params.sizes, "distribution of sizes")
      ->check(CLI::IsMember({"web_search", "data_mining", "web_server"}));
  app.add_option("--most", params.most, "largest flow, bytes")->check(CLI::Range(1000, 1 << 30));
  app.add_option("--load", params.load, "of the hosts' links")->check(CLI::Range(0.01, 1.0));
  app.add_option("--lossy", params.lossyShare,
                 "pods, together: share of the cables that lose packets")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--all", params.all,
               "pods: the scheme carries all flows, not only those up to 100 KB");
  app.add_option("--fan-out", params.fanOut, "together: hosts that answer one at once, every 5 ms")
      ->check(CLI::Range(0, 63));
  app.add_flag("--black-holes", params.blackHoles,
               "lossy-links: those that lose more than 60 % too");
  app.add_option("--flows", params.flows,
                 "two-racks (1500), mesh (500), lossy-links: links (10000)")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--loss", params.loss, "share of packets lost: two-racks (0.02), mesh (0.1)")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--coding-rate", params.codingRate,
                 "mesh, cofuso: parities for each packet, fixed; 0: by the loss rate")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--cpu", params.processor, "permutation, jobs: tell what the processor took");
  app.add_option("--policy", params.policy, "of recovery");
  app.add_option("--seed", params.seed, "of traffic and hashes");
  app.add_option("-k", params.k, "of the fat tree, even")->check(CLI::Range(2, 10));
  app.add_option("--rate", params.rate, "of every link, bit/s")->check(CLI::Range(1e6, 1e12));
  app.add_option("--delay", params.delay, "of every link, us")->check(CLI::Range(0.0, 10000.0));
  app.add_option("--queue", params.queue, "packets that wait at a port")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--threshold", params.threshold, "K, packets")->check(CLI::Range(1, 1000000));
  app.add_option("--subflows", params.subflows, "of each pair")->check(CLI::Range(1, 16));
  app.add_option("--initial-window", params.initialWindow, "datagrams")->check(CLI::Range(1, 1000));
  app.add_option("--min-rto", params.minRto, "least RTO, ms; 0: RFC 9002")
      ->check(CLI::Range(0.0, 10000.0));
  app.add_option("--time", params.time, "measured, ms")->check(CLI::Range(0.1, 100000.0));
  app.add_option("--long", params.longShare, "permutation: share of the hosts with long flows")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--warm-up", params.warmUp, "before that, ms")->check(CLI::Range(0.0, 100000.0));
  app.add_option("--ahead", params.ahead, "segments that wait or are on their way")
      ->check(CLI::Range(1, 4096));
  CLI11_PARSE(app, argc, argv);
  return runProgram("sim_fabric", [&] {
    const FabricExperiment& experiment = byName(fabricExperiments(), name);
    if (controllers.empty()) controllers = {params.controller};
    if (schemes.empty()) schemes = {params.scheme};
    bool byScheme = experiment.variant == &FabricParams::scheme;
    params.controller = controllers.front();
    runEach(experiment, byScheme ? "scheme" : "controller", experiment.variant,
            byScheme ? schemes : controllers, params);
  });
}
