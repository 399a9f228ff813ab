// ns3_check SCENARIO [OPTION...]: what sim_tcp runs, in ns-3. Prints one JSON object. See docs/evaluation/ns3.md.

#include <ns3/rng-seed-manager.h>
#include <CLI/CLI.hpp>
#include <iostream>

#include "sim/ns3/scenarios.h"
#include "sim/program.h"

namespace {

using namespace braid::crosscheck;

void addTcp(CLI::App* verb, TcpSettings& tcp) {
  verb->add_option("--control", tcp.control, "congestion control")
      ->check(CLI::IsMember({"newreno", "cubic", "dctcp"}))
      ->capture_default_str();
  verb->add_option("--recovery", tcp.recovery, "how the window falls")
      ->check(CLI::IsMember({"prr", "classic"}))
      ->capture_default_str();
  verb->add_option("--min-rto", tcp.minRto, "least retransmission timeout, ms")
      ->check(CLI::Range(0.001, 60000.0))
      ->capture_default_str();
  verb->add_option("--initial-window", tcp.initialWindow, "segments")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--ack-every", tcp.ackEvery, "segments of one ACK")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  verb->add_option("--ack-delay", tcp.ackDelay, "how long an ACK waits at most, ms")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  verb->add_option("--segment", tcp.segment, "bytes of payload")
      ->check(CLI::Range(1, 1448))
      ->capture_default_str();
  verb->add_option("--buffer", tcp.buffer, "of sender and receiver, bytes")
      ->check(CLI::Range(1 << 16, 1 << 30))
      ->capture_default_str();
  verb->add_flag("--sack,!--no-sack", tcp.sack, "selective acknowledgments (default: on)");
  verb->add_flag("--timestamps,!--no-timestamps", tcp.timestamps, "RFC 7323 (default: on)");
}

CLI::Option* addNumber(CLI::App* verb, const char* name, auto& value, const char* what) {
  return verb->add_option(name, value, what)->check(CLI::PositiveNumber)->capture_default_str();
}

CLI::Option* addPackets(CLI::App* verb, const char* name, uint32_t& value, const char* what) {
  return verb->add_option(name, value, what)->check(CLI::Range(2, 1000000))->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs in ns-3 what sim_tcp runs with Braid's own TCP model");
  app.require_subcommand(1)->fallthrough();
  uint32_t seed = 1;
  app.add_option("--seed", seed, "of all that is random")->check(CLI::PositiveNumber)->capture_default_str();

  LossyPath lossy;
  auto* verb = app.add_subcommand("lossy-path", "one bulk flow over a path that loses at random");
  addNumber(verb, "--rate", lossy.rate, "Mbit/s");
  addNumber(verb, "--rtt", lossy.rtt, "ms");
  verb->add_option("--loss", lossy.loss, "share of data packets lost")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  addNumber(verb, "--seconds", lossy.seconds, "from the first byte on");
  addPackets(verb, "--queue", lossy.queue, "packets");
  addTcp(verb, lossy.tcp);

  DctcpQueue queue;
  verb = app.add_subcommand("dctcp-queue", "long flows into one port that marks");
  addNumber(verb, "--senders", queue.senders, "flows");
  addPackets(verb, "--threshold", queue.threshold, "K, packets");
  addNumber(verb, "--rate", queue.rate, "of every link, Mbit/s");
  addNumber(verb, "--rtt", queue.rtt, "us");
  addNumber(verb, "--seconds", queue.seconds, "after the warm-up");
  addNumber(verb, "--warmup", queue.warmup, "s");
  addNumber(verb, "--spread", queue.spread, "in which the flows begin, us");
  addPackets(verb, "--queue", queue.queue, "packets");
  addTcp(verb, queue.tcp);

  Incast incast;
  verb = app.add_subcommand("incast", "responses that meet at one port");
  verb->add_option("--senders", incast.senders, "responses")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  addNumber(verb, "--bytes", incast.bytes, "of each");
  addNumber(verb, "--rate", incast.rate, "of every link, Mbit/s");
  addNumber(verb, "--rtt", incast.rtt, "us");
  addNumber(verb, "--spread", incast.spread, "in which the responses begin, us");
  addPackets(verb, "--queue", incast.queue, "packets");
  addPackets(verb, "--threshold", incast.threshold, "K with dctcp, packets");
  addTcp(verb, incast.tcp);

  Permutation permutation;
  std::string paths;
  bool printPaths = false;
  verb = app.add_subcommand("permutation", "a fat tree of 16 hosts, each sends to another");
  addNumber(verb, "--rate", permutation.rate, "of every link, Mbit/s");
  addNumber(verb, "--delay", permutation.delay, "of every link, us");
  addNumber(verb, "--seconds", permutation.seconds, "after the warm-up");
  addNumber(verb, "--warmup", permutation.warmup, "s");
  addNumber(verb, "--spread", permutation.spread, "in which the flows begin, us");
  addPackets(verb, "--queue", permutation.queue, "packets");
  addPackets(verb, "--threshold", permutation.threshold, "K with dctcp, packets");
  verb->add_option("--paths", paths, "file with the flows and their switches, instead of drawn ones")
      ->check(CLI::ExistingFile);
  verb->add_flag("--print-paths", printPaths, "prints them, as --paths reads them, and ends");
  addTcp(verb, permutation.tcp);

  CLI11_PARSE(app, argc, argv);
  return braid::sim::runProgram("ns3_check", [&] {
    ns3::RngSeedManager::SetSeed(1);
    ns3::RngSeedManager::SetRun(seed);
    Json line{{"experiment", app.get_subcommands().front()->get_name()}, {"seed", seed}};
    if (app.got_subcommand("permutation")) {
      permutation.routes = paths.empty() ? drawRoutes() : readRoutes(paths);
      if (printPaths) {
        std::cout << toJson(permutation.routes).dump() << std::endl;
        return;
      }
    }
    line.update(app.got_subcommand("lossy-path")    ? run(lossy)
                : app.got_subcommand("dctcp-queue") ? run(queue)
                : app.got_subcommand("incast")      ? run(incast)
                                                    : run(permutation));
    std::cout << line.dump() << std::endl;
  });
}
