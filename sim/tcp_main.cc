// sim_tcp EXPERIMENT [--control NAME]...: plain TCP in virtual time, without Braid, as the baseline
// of the papers. Prints one JSON object per congestion control.

#include <CLI/CLI.hpp>

#include "sim/program.h"
#include "sim/tcp_experiments.h"
#include "sim/tcp_options.h"
#include "simnet/tcp/rivals.h"

int main(int argc, char** argv) {
  using namespace braid::sim;
  std::string name;
  std::vector<std::string> controls;
  TcpParams params;
  auto listed = [](auto names) {
    return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()));
  };
  CLI::App app(
      "Runs plain TCP in virtual time. Packets are whole IPv4 packets of at most 1500 bytes: 1448 "
      "bytes of "
      "payload "
      "with timestamps, 1460 without. Links take no time for framing");
  app.add_option("experiment", name, listOf(tcpExperiments()))->required();
  app.add_option("--control", controls,
                 "congestion control, one after the other; with dctcp the ports mark")
      ->check(listed(tcp::controlNames()));
  app.add_option("--recovery", params.recovery, "how losses are repaired")
      ->check(listed(tcp::recoveryNames()));
  app.add_option("--flows", params.flows, "timeouts")->check(CLI::Range(1, 100'000'000));
  app.add_option("--paths", params.paths, "timeouts: parallel paths of which one loses")
      ->check(CLI::Range(1, 64));
  app.add_option("--initial-window", params.initialWindow, "segments")->check(CLI::Range(1, 1000));
  app.add_option("--rounds", params.rounds, "incast")->check(CLI::Range(1, 10000));
  addTcpOptions(app, params);
  CLI11_PARSE(app, argc, argv);
  return runProgram("sim_tcp", [&] {
    if (controls.empty()) controls = {params.control};
    runEach(byName(tcpExperiments(), name), "control", &TcpParams::control, controls, params);
  });
}
