// braid-sim GROUP EXPERIMENT [OPTION...]: the papers' experiments in virtual time. Prints one JSON
// object for each policy, controller, scheme, shim or congestion control that is named. See
// evaluation/README.md.

#include <CLI/CLI.hpp>
#include <fstream>
#include <functional>

#include "evaluation/fabric/fabric_experiments.h"
#include "evaluation/fabric/scheme_traffic.h"
#include "evaluation/program.h"
#include "evaluation/racks/rack_experiments.h"
#include "evaluation/rate/rate_experiments.h"
#include "evaluation/recovery/recovery_experiments.h"
#include "evaluation/tcp/tcp_experiments.h"
#include "evaluation/tcp/tcp_options.h"
#include "scheduler/path/path_scheduler.h"
#include "scheduler/rate/controller.h"
#include "scheduler/recovery/recovery.h"
#include "simnet/tcp/rivals.h"
#include "tunnel/api/options.h"

namespace braid::sim {
namespace {

/// Accepts the names of the range.
template <typename Names>
CLI::IsMember oneOf(const Names& names) {
  return CLI::IsMember(std::vector<std::string>(std::begin(names), std::end(names)));
}

/// The experiments of FUSO and CoFUSO with Braid's own core.
struct RecoveryCommand {
  std::string name;
  std::vector<std::string> policies{"adaptive"};
  Params params;

  void describe(CLI::App& app) {
    app.add_option("experiment", name, listOf(experiments()))->required();
    app.add_option("--policy", policies, "recovery policies, one after the other")
        ->check([](const std::string& policy) {
          return makeRecoveryPolicy(policy, {}, 0) ? std::string() : "no policy " + policy;
        });
    app.add_option("--seed", params.seed, "of losses, sizes, routes and arrivals");
    app.add_option("--flows", params.flows, "how many flows (incast: rounds, bulk: seconds)");
    app.add_option("--loss", params.loss, "share of packets lost on the lossy links")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--burst", params.burst, "mean run of losses, packets")
        ->check(CLI::Range(1.0, 1000.0));
    app.add_option("--subflows", params.subflows, "fabric, timeouts, incast, routers")
        ->check(CLI::Range(1, 16));
    app.add_option("--controller", params.controller, "instead of the experiment's own")
        ->check(oneOf(kControllerNames));
    app.add_option("--scheduler", params.scheduler, "earliest, ecf or minrtt")
        ->check(oneOf(kPathSchedulerNames));
    app.add_option("--min-rto", params.minRto,
                   "least retransmission timeout of every policy, ms (Linux: 200)")
        ->check(CLI::Range(0.0, 1000.0));
    app.add_flag("--testbed", params.testbed,
                 "cofuso with K_max 30, M_max 1, alpha1 0.05, beta1 0.95 (section 5.2)");
    app.add_option("--m-max", params.mMax, "most parities of a block")->check(CLI::Range(1, 16));
    app.add_option("--coding-rate", params.codingRate,
                   "cofuso: parities for each packet, fixed; 0: by the loss rate")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--sizes", params.sizes,
                   "distribution of flow sizes, a name in evaluation/data");
    app.add_option("--max-bytes", params.maxBytes, "largest flow")->check(CLI::PositiveNumber);
    app.add_option("--senders", params.senders, "incast")->check(CLI::Range(1, 120));
    app.add_flag("--warm", params.warm,
                 "responses, routers: all flows in one tunnel, with the product's controller");
    app.add_flag("--edge", params.edge,
                 "fabric: the clients' access links lose instead of path P1");
    app.add_flag("--alone", params.alone, "mice: without the elephant");
  }
  void run() const {
    runEach(byName(experiments(), name), "policy", &Params::policy, policies, params);
  }
};

/// The experiments of rate control with Braid's own core.
struct RateCommand {
  std::string name;
  std::string series;
  double interval = 0;
  std::vector<std::string> controllers;
  RateParams params;

  void describe(CLI::App& app) {
    WanParams& wan = params.wan;
    app.add_option("experiment", name, listOf(rateExperiments()))->required();
    app.add_option("--controller", controllers, "rate control, one after the other")
        ->check(oneOf(kControllerNames));
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
        ->check(oneOf(kPathSchedulerNames));
    app.add_flag("--saturate", wan.saturate,
                 "bulk, interactive: raw segments instead of an inner TCP");
    app.add_option("--buffer", wan.buffer, "cubic-share, converge: bandwidth-delay products")
        ->check(CLI::Range(0.05, 100.0));
    app.add_option("--rivals", wan.rivals, "cubic-share")->check(CLI::Range(1, 60));
    app.add_option("--rival", wan.rival, "cubic-share: their controller")
        ->check(oneOf(kControllerNames));
    app.add_option("--order", wan.order, "cubic-share: when the controller begins")
        ->check(CLI::IsMember({"together", "first", "last"}));
    app.add_option("--policed-rate", wan.policedRate, "policer: bit/s")->check(CLI::PositiveNumber);
    app.add_option("--burst", wan.burstBytes, "policer: bytes")->check(CLI::Range(1500, 1 << 30));
    app.add_option("--queue-bytes", wan.queueBytes, "shallow: of the buffer")
        ->check(CLI::Range(3000, 1 << 30));
    app.add_option("--load", wan.load, "two-way: what fills the paths beside the download")
        ->check(CLI::IsMember({"both", "rival", "stranger"}));
    app.add_option("--network", wan.network, "download: the paths")
        ->check(CLI::IsMember({"far", "long", "bursty", "shallow", "wifi-lte"}));
    app.add_option("--sender", wan.sender, "download, policed: inner TCP, or raw segments")
        ->check(CLI::IsMember({"cubic", "newreno", "saturated"}));
    app.add_option("--burst-ms", wan.burstMs, "policed: of the bucket, at the policer's rate")
        ->check(CLI::Range(1.0, 10000.0));
  }
  void run() {
    const RateExperiment& experiment = byName(rateExperiments(), name);
    if (controllers.empty()) {
      controllers.push_back(experiment.controller ? experiment.controller
                                                  : TunnelOptions{}.controller);
    }
    std::ofstream file;
    if (!series.empty()) {
      if (controllers.size() > 1) throw std::runtime_error("a series is of one controller");
      file.exceptions(std::ios::failbit | std::ios::badbit);
      file.open(series);
      params.series = {&file, fromSeconds(interval / 1000)};
    }
    runEach(experiment, "controller", &RateParams::controller, controllers, params);
  }
};

/// T-RACKs' simulations with Braid's ack shim.
struct RacksCommand {
  std::string name;
  std::vector<std::string> shims;
  RackParams params;

  void describe(CLI::App& app) {
    app.add_option("experiment", name, listOf(rackExperiments()))->required();
    app.add_option("--shim", shims, "where it stands and what it may do, one after the other")
        ->check(oneOf(shimNames()));
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
    app.add_option("--bytes", params.bytes, "incast: of a small flow")
        ->check(CLI::Range(1, 1 << 30));
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
        ->check(oneOf(tcp::controlNames()));
    app.add_option("--recovery", params.recovery,
                   "traced, cluster: how the hosts' TCP finds losses")
        ->check(oneOf(tcp::recoveryNames()));
  }
  void run() {
    if (shims.empty()) shims = {"off", "sender"};
    runEach(byName(rackExperiments(), name), "shim", &RackParams::shim, shims, params);
  }
};

/// Experiments on networks of many switches with Braid's core.
struct FabricCommand {
  std::string name;
  std::vector<std::string> controllers, schemes;
  FabricParams params;

  void describe(CLI::App& app) {
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
    app.add_option("--fan-out", params.fanOut,
                   "together: hosts that answer one at once, every 5 ms")
        ->check(CLI::Range(0, 63));
    app.add_flag("--times", params.times,
                 "together: also report the time of each small response, in seconds");
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
    app.add_option("--initial-window", params.initialWindow, "datagrams")
        ->check(CLI::Range(1, 1000));
    app.add_option("--min-rto", params.minRto, "least RTO, ms; 0: RFC 9002")
        ->check(CLI::Range(0.0, 10000.0));
    app.add_option("--time", params.time, "measured, ms")->check(CLI::Range(0.1, 100000.0));
    app.add_option("--long", params.longShare, "permutation: share of the hosts with long flows")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--warm-up", params.warmUp, "before that, ms")->check(CLI::Range(0.0, 100000.0));
    app.add_option("--ahead", params.ahead, "segments that wait or are on their way")
        ->check(CLI::Range(1, 4096));
  }
  void run() {
    const FabricExperiment& experiment = byName(fabricExperiments(), name);
    if (controllers.empty()) controllers = {params.controller};
    if (schemes.empty()) schemes = {params.scheme};
    bool byScheme = experiment.variant == &FabricParams::scheme;
    params.controller = controllers.front();
    runEach(experiment, byScheme ? "scheme" : "controller", experiment.variant,
            byScheme ? schemes : controllers, params);
  }
};

/// Plain TCP without Braid, the baseline of the papers.
struct TcpCommand {
  std::string name;
  std::vector<std::string> controls;
  TcpParams params;

  void describe(CLI::App& app) {
    app.add_option("experiment", name, listOf(tcpExperiments()))->required();
    app.add_option("--control", controls,
                   "congestion control, one after the other; with dctcp the ports mark")
        ->check(oneOf(tcp::controlNames()));
    app.add_option("--recovery", params.recovery, "how losses are repaired")
        ->check(oneOf(tcp::recoveryNames()));
    app.add_option("--flows", params.flows, "timeouts")->check(CLI::Range(1, 100'000'000));
    app.add_option("--paths", params.paths, "timeouts: parallel paths of which one loses")
        ->check(CLI::Range(1, 64));
    app.add_option("--initial-window", params.initialWindow, "segments")
        ->check(CLI::Range(1, 1000));
    app.add_option("--rounds", params.rounds, "incast")->check(CLI::Range(1, 10000));
    addTcpOptions(app, params);
  }
  void run() {
    if (controls.empty()) controls = {params.control};
    runEach(byName(tcpExperiments(), name), "control", &TcpParams::control, controls, params);
  }
};

}  // namespace
}  // namespace braid::sim

int main(int argc, char** argv) {
  using namespace braid::sim;
  CLI::App app("Runs the papers' experiments with Braid's own code in virtual time");
  app.require_subcommand(1);
  std::function<void()> work;
  auto add = [&](const char* group, const char* what, auto& command) {
    CLI::App* sub = app.add_subcommand(group, what);
    command.describe(*sub);
    sub->callback([&work, &command] { work = [&command] { command.run(); }; });
  };
  RecoveryCommand recovery;
  RateCommand rate;
  RacksCommand racks;
  FabricCommand fabric;
  TcpCommand tcp;
  add("recovery", "the experiments of FUSO and CoFUSO", recovery);
  add("rate", "rate control: AMP's experiments and Internet paths", rate);
  add("racks", "T-RACKs' simulations with the ack shim", racks);
  add("fabric", "networks of many switches", fabric);
  add("tcp",
      "plain TCP without Braid. Packets are whole IPv4 packets of at most 1500 bytes: 1448 bytes "
      "of "
      "payload with timestamps, 1460 without. Links take no time for framing",
      tcp);
  CLI11_PARSE(app, argc, argv);
  return runProgram("braid-sim", work);
}
