// ns3_check EXPERIMENT [OPTION...]: runs the experiments of braid-sim tcp in ns-3. Prints one JSON
// object. See evaluation/ns3/README.md.

#include <ns3/rng-seed-manager.h>
#include <CLI/CLI.hpp>
#include <iostream>

#include "evaluation/ns3/scenarios.h"
#include "evaluation/ns3/tcp.h"
#include "evaluation/program.h"
#include "evaluation/tcp/tcp_options.h"

namespace {

using namespace braid::crosscheck;

Json runByName(const std::string& experiment, const TcpParams& params, const std::string& routes) {
  if (experiment == "lossy-path") return runLossyPath(params);
  if (experiment == "dctcp-queue") return runDctcpQueue(params);
  if (experiment == "incast") return runIncast(params);
  return runPermutation(params, readRoutes(routes));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Runs in ns-3 what braid-sim tcp runs with Braid's own models; incast has one round");
  std::string experiment, routes;
  Variant variant;
  TcpParams params;
  app.add_option("experiment", experiment)
      ->required()
      ->check(CLI::IsMember({"lossy-path", "dctcp-queue", "incast", "permutation"}));
  app.add_option("--control", params.control, "congestion control; with dctcp the ports mark")
      ->check(CLI::IsMember({"newreno", "cubic", "dctcp"}));
  app.add_option("--reduction", variant.reduction,
                 "how the window falls in a recovery: RFC 6937, or at once")
      ->check(CLI::IsMember({"prr", "classic"}));
  app.add_flag("--least-window", variant.leastWindow,
               "dctcp keeps two segments; ns-3's own may have less than one");
  app.add_option("--routes", routes, "permutation: file with the routes of braid-sim's")
      ->check(CLI::ExistingFile);
  braid::sim::addTcpOptions(app, params);
  CLI11_PARSE(app, argc, argv);
  return braid::sim::runProgram("ns3_check", [&] {
    if (variant.leastWindow && params.control != "dctcp")
      throw std::runtime_error("--least-window is of dctcp alone");
    if (experiment == "permutation" && routes.empty())
      throw std::runtime_error("permutation needs --routes");
    ns3::RngSeedManager::SetSeed(1);
    ns3::RngSeedManager::SetRun(params.seed);
    setDefaults(params, variant);
    Json line{{"experiment", experiment}, {"control", params.control}, {"seed", params.seed}};
    line.update(runByName(experiment, params, routes));
    std::cout << line.dump() << std::endl;
  });
}
