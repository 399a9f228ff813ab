// sim_chaos --runs N --seed S [--verbose]: N randomised runs with the seeds S, S+1, ... Prints
// failures as they come and ends with one line of JSON. Exit status 1 when a run failed.

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/sim/chaos_run.h"

int main(int argc, char** argv) {
  uint64_t runs = 100;
  uint64_t seed = 1;
  bool verbose = false;
  CLI::App app("Runs two gateways over random bad paths in virtual time");
  app.add_option("--runs", runs, "how many runs");
  app.add_option("--seed", seed, "seed of the first run");
  app.add_flag("--verbose", verbose, "tell the story of each run");
  CLI11_PARSE(app, argc, argv);

  uint64_t failed = 0;
  uint64_t datagrams = 0;
  double virtualSeconds = 0;
  nlohmann::json firstFailed = nullptr;
  std::map<std::string, uint64_t> causes;
  for (uint64_t i = 0; i < runs; ++i) {
    braid::sim::ChaosResult result = braid::sim::chaosRun(seed + i);
    datagrams += result.datagrams;
    virtualSeconds += result.virtualSeconds;
    if (verbose)
      std::cout << "seed " << seed + i << result.story << "\nhash " << result.hash << "\n";
    if (result.failure.empty()) continue;
    std::cout << "seed " << seed + i << " failed: "
              << (verbose ? result.failure : result.failure.substr(0, result.failure.find('\n')))
              << "\n";
    if (failed++ == 0) firstFailed = seed + i;
    ++causes[result.failure.substr(0, result.failure.find(':'))];
  }
  nlohmann::json summary = {{"runs", runs},           {"failed", failed},
                            {"first_seed", seed},     {"first_failed_seed", firstFailed},
                            {"datagrams", datagrams}, {"virtual_seconds", virtualSeconds},
                            {"causes", causes}};
  std::cout << summary.dump() << std::endl;
  return failed > 0 ? 1 : 0;
}
