// sim_tcp EXPERIMENT [--control NAME]...: plain TCP in virtual time, without Braid: the papers' rivals. Prints
// one JSON object a congestion control.

#include <CLI/CLI.hpp>

#include "sim/program.h"
#include "sim/tcp_experiments.h"
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
      "Runs plain TCP in virtual time. Packets are whole IPv4 packets of at most 1500 bytes: 1448 bytes of "
      "payload "
      "with timestamps, 1460 without. Links take no time for framing");
  app.add_option("experiment", name, listOf(tcpExperiments()))->required();
  app.add_option("--control", controls, "congestion control, one after the other; with dctcp the port marks")
      ->check(listed(tcp::controlNames()));
  app.add_option("--recovery", params.recovery, "how losses are repaired")
      ->check(listed(tcp::recoveryNames()));
  app.add_option("--seed", params.seed, "of losses and starts");
  app.add_option("--rate", params.rate, "of every link, bit/s (lossy-path 10e6, else 1e9)")
      ->check(CLI::PositiveNumber);
  app.add_option("--rtt", params.rtt, "without queues and transmission, us (lossy-path 40000, else 100)")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", params.seconds, "lossy-path (60), dctcp-queue (2): from the first SYN on")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--senders", params.senders, "dctcp-queue (2), incast (20)")->check(CLI::Range(1, 250));
  app.add_option("--queue", params.queue, "packets that wait at the bottleneck (dctcp-queue 1000, else 100)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--loss", params.loss, "lossy-path: share of data packets lost")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--threshold", params.threshold, "dctcp: marks what finds more than K packets waiting");
  app.add_option("--bytes", params.bytes, "incast: of each sender")->check(CLI::Range(1, 1 << 30));
  app.add_option("--rounds", params.rounds, "incast")->check(CLI::Range(1, 10000));
  app.add_option("--min-rto", params.minRto, "ms")->check(CLI::Range(0.1, 10000.0));
  app.add_flag("!--no-delayed-acks", params.delayedAcks, "each segment is acknowledged at once");
  app.add_flag("!--no-timestamps", params.timestamps, "RFC 7323 off");
  CLI11_PARSE(app, argc, argv);
  return runProgram("sim_tcp", [&] {
    if (controls.empty()) controls = {params.control};
    runEach(byName(tcpExperiments(), name), "control", &TcpParams::control, controls, params);
  });
}
