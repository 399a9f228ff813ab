// sim_racks EXPERIMENT [--shim NAME]...: T-RACKs' simulations with Braid's ack shim in virtual
// time. Prints one JSON object per shim. See docs/evaluation.md.

#include <CLI/CLI.hpp>

#include "sim/program.h"
#include "sim/rack_experiments.h"
#include "simnet/tcp/rivals.h"

int main(int argc, char** argv) {
  using namespace braid::sim;
  std::string name;
  std::vector<std::string> shims;
  RackParams params;
  CLI::App app("Runs T-RACKs' simulations with Braid's ack shim in virtual time");
  std::vector<std::string> names(shimNames().begin(), shimNames().end());
  app.add_option("experiment", name, listOf(rackExperiments()))->required();
  app.add_option("--shim", shims, "where it stands and what it may do, one after the other")
      ->check(CLI::IsMember(names));
  app.add_option("--scheme", params.scheme, "queue and TCP")
      ->check(CLI::IsMember({"droptail", "droprand", "red-ecn", "dctcp"}));
  app.add_option("--seed", params.seed, "of arrivals");
  app.add_option("--flows", params.flows, "hosts; incast: flows of a round, large ones too")
      ->check(CLI::Range(4, 250));
  app.add_flag("--large", params.large, "incast: a quarter of the flows are large (CASE 2)");
  app.add_option("--setup", params.setup, "whether a connection is there before its flow")
      ->check(CLI::IsMember({"established", "handshake"}));
  app.add_option("--jitter", params.jitter, "of all packets on the hosts' links, us")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--rtt", params.rtt,
                 "not leaf-spine, cluster: without queues and transmission, ms")
      ->check(CLI::Range(0.01, 10000.0));
  app.add_option("--queue", params.queue,
                 "not leaf-spine: packets that wait at the bottleneck; cluster: at every port")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--rounds", params.rounds, "incast")->check(CLI::Range(1, 100));
  app.add_option("--bytes", params.bytes, "incast: of a small flow")->check(CLI::Range(1, 1 << 30));
  app.add_option("--alpha", params.alpha, "of the shim")->check(CLI::Range(1, 1000));
  app.add_option("--gamma", params.gamma, "of the shim, bytes");
  app.add_option("--load", params.load,
                 "websearch, traced: of the bottleneck; leaf-spine: of the leaves' uplinks; "
                 "cluster: of the "
                 "clients' rack")
      ->check(CLI::Range(0.01, 1.0));
  app.add_option("--seconds", params.seconds, "websearch, traced: of arrivals")
      ->check(CLI::Range(0.1, 1000.0));
  app.add_option("--time", params.time, "leaf-spine: of arrivals, ms")
      ->check(CLI::Range(0.1, 100000.0));
  app.add_option("--sizes", params.sizes, "leaf-spine, traced, cluster: distribution of sizes")
      ->check(CLI::IsMember({"web_search", "data_mining", "web_server"}));
  app.add_option("--most", params.most, "leaf-spine, traced, cluster: largest flow, bytes")
      ->check(CLI::Range(1000, 1 << 30));
  app.add_option("--hosts", params.hostsPerLeaf, "leaf-spine, cluster: of a rack")
      ->check(CLI::Range(1, 100));
  app.add_option("--requests", params.requests, "cluster: of each client, in the mean")
      ->check(CLI::Range(1, 10000));
  app.add_flag("--everyone", params.everyone,
               "cluster: all hosts are clients, not those of one rack");
  app.add_flag("--background", params.background,
               "cluster: each host also sends an endless flow to another rack");
  app.add_option("--control", params.control,
                 "traced, cluster: of the hosts' TCP, unless --scheme is dctcp")
      ->check(CLI::IsMember(
          std::vector<std::string>(tcp::controlNames().begin(), tcp::controlNames().end())));
  app.add_option("--recovery", params.recovery, "traced, cluster: how the hosts' TCP finds losses")
      ->check(CLI::IsMember(
          std::vector<std::string>(tcp::recoveryNames().begin(), tcp::recoveryNames().end())));
  CLI11_PARSE(app, argc, argv);
  return runProgram("sim_racks", [&] {
    const RackExperiment& experiment = byName(rackExperiments(), name);
    if (shims.empty()) shims = {"off", "sender"};
    runEach(experiment, "shim", &RackParams::shim, shims, params);
  });
}
