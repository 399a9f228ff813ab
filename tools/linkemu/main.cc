// linkemu CONFIG.json: joins pairs of TUN devices by emulated links (README.md).
#include <sched.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>

#include "linkemu/config.h"
#include "linkemu/control_server.h"
#include "linkemu/emulator.h"

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

std::string readFile(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw braid::ConfigError("cannot read " + path);
  return text;
}

/// Measured with two busy processes on two CPUs: a delay of 20 ms is 8 to 15 ms too long without
/// real-time priority, 0.1 ms with it.
void becomeRealtime() {
  sched_param lowest{};
  lowest.sched_priority = sched_get_priority_min(SCHED_RR);
  if (sched_setscheduler(0, SCHED_RR, &lowest) != 0)
    std::perror("linkemu: runs without real-time priority");
}

void run(const braid::EmulatorConfig& config) {
  struct ev_loop* loop = ev_default_loop(0);
  braid::Emulator emulator(config, loop);
  std::optional<braid::ControlServer> control;
  if (!config.control.empty()) {
    control.emplace(config.control, loop, [&](const std::string& line) {
      std::string answer = emulator.handle(line);
      if (emulator.quitting()) ev_break(loop, EVBREAK_ALL);  // after this answer is written
      return answer;
    });
  }
  auto stop = [](struct ev_loop* l, ev_signal*, int) { ev_break(l, EVBREAK_ALL); };
  ev_signal interrupt;
  ev_signal terminate;
  ev_signal_init(&interrupt, stop, SIGINT);
  ev_signal_init(&terminate, stop, SIGTERM);
  ev_signal_start(loop, &interrupt);
  ev_signal_start(loop, &terminate);
  if (config.realtime) becomeRealtime();
  std::puts("ready");
  std::fflush(stdout);
  ev_run(loop, 0);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Joins pairs of TUN devices by emulated links");
  std::string path;
  app.add_option("CONFIG", path, "configuration file (JSON)")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kExitUsage;
  }
  try {
    run(braid::parseConfig(readFile(path)));
  } catch (const braid::ConfigError& e) {
    std::fprintf(stderr, "linkemu: %s: %s\n", path.c_str(), e.what());
    return kExitUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "linkemu: %s\n", e.what());
    return kExitFailure;
  }
  return 0;
}
