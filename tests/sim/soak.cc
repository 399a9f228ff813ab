// sim_soak --hours N --seed S: a pair of gateways under full load for N hours of virtual time
// (soak_run.h). Ends with one line of JSON, which also has the largest and the smallest memory of
// the process in each hour.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "host/linux/process.h"
#include "tests/sim/soak_run.h"

namespace {

// Resident memory in MiB.
double residentMiB() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))) / (1 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t hours = 72;
  uint64_t seed = 1;
  CLI::App app("Runs two gateways under full load for a long virtual time");
  app.add_option("--hours", hours, "how long");
  app.add_option("--seed", seed, "seed of the run");
  CLI11_PARSE(app, argc, argv);

  braid::returnLargeBlocks();       // as the daemon does
  std::vector<double> most, least;  // of each hour
  size_t minutes = 0;
  auto eachMinute = [&] {
    double now = residentMiB();
    if (minutes++ % 60 == 0) most.push_back(now), least.push_back(now);
    most.back() = std::max(most.back(), now);
    least.back() = std::min(least.back(), now);
  };
  braid::sim::SoakResult r = braid::sim::soakRun(seed, std::chrono::hours(hours), eachMinute);
  nlohmann::json summary = {{"hours", hours},
                            {"seed", seed},
                            {"wrong_bytes", r.wrongBytes},
                            {"resets", r.resets},
                            {"kept", r.keptPackets},
                            {"broken", r.broken},
                            {"transferred", r.transferred},
                            {"datagrams", r.datagrams},
                            {"rekeys", r.rekeys},
                            {"flaps", r.flaps},
                            {"moves", r.moves},
                            {"reloads", r.reloads},
                            {"resident_mib", most},
                            {"resident_least_mib", least}};
  std::cout << summary.dump() << std::endl;
  return 0;
}
