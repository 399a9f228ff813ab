#pragma once

// Experiments of rate control: AMP's (sections 3 and 5.2), several controllers at one bottleneck
// that marks; and those of the Internet's paths (targets rate.2 to rate.7). Their parameters and
// names.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "evaluation/models/figures.h"
#include "evaluation/models/network.h"
#include "evaluation/models/series.h"
#include "scheduler/rate/controller.h"

namespace braid::sim {

/// Parameters of the experiments on Internet paths (evaluation/internet.md). Unset: the
/// experiment's default.
struct WanParams {
  std::optional<double> seconds;  ///< measured time after the warm-up
  std::optional<double>
      loss;  ///< share of packets lost on WiFi towards the client; bulk, interactive
  double jitter =
      0;  ///< bulk, interactive: extra delay up to this share of the RTT, half of it each way
  std::optional<std::string> recovery;  ///< policy
  std::optional<std::string> scheduler;
  bool saturate = false;  ///< bulk, interactive: send raw segments instead of an inner TCP
  double buffer = 1;  ///< cubic-share, converge: buffer of the bottleneck, bandwidth-delay products
  size_t rivals = 1;  ///< cubic-share
  std::string rival = "cubic";  ///< cubic-share: the rivals' controller
  /// Cubic-share: whether the controller begins with the rivals, "first" or "last"
  std::string order = "together";
  double policedRate = 20e6;     ///< policer: bit/s
  size_t burstBytes = 64 << 10;  ///< policer: size of the bucket
  size_t queueBytes = 30'000;    ///< shallow: size of the buffer
  /// Two-way: what fills the paths beside the download. "both": an upload of the tunnel; "rival":
  /// that, and a download of the rival on each path; "stranger": an upload of the rival on each.
  std::string load = "both";
  std::string network = "far";  ///< download: name of the paths
  /// download, policed: congestion control of an inner TCP, or "saturated" for raw segments
  std::string sender = "cubic";
  double burstMs = 30;  ///< policed: size of the bucket, in time at the policer's rate
};

/// Parameters of AMP's fabric (section 5.1) and its traffic, and those of all experiments.
struct RateParams {
  std::string controller = "amp";
  AmpOptions amp{};
  double liaBeta = 2;  ///< a mark takes 1/liaBeta of LIA's window
  uint64_t seed = 1;
  SeriesOptions series{};
  double rate = 10e9;        ///< bits per second, of every link
  double rtt = 24;           ///< us, without queues; default: the time of 20 packets (section 3.2)
  size_t queue = 100;        ///< packets
  size_t threshold = 10;     ///< K, packets
  size_t subflows = 4;       ///< subflows of a multipath connection
  size_t initialWindow = 2;  ///< datagrams
  double minRto = 0;         ///< least RTO, ms; 0: RFC 9002
  size_t senders = 30;       ///< incast: k; sweep: connections
  uint64_t bytes = 128 << 10;  ///< incast: size of a flow
  size_t rounds = 20;          ///< incast
  size_t multipath = 1;        ///< syndrome: connections with the controller
  size_t singles = 4;          ///< syndrome: DCTCP connections
  double time = 200;           ///< syndrome, sweep: ms
  WanParams wan{};
};

struct RateExperiment {
  const char* name;
  const char* what;
  Json (*run)(const RateParams&);
  /// Default controller of the experiment; nullptr: the product's default
  const char* controller = nullptr;
};

/// All of them by name.
std::span<const RateExperiment> rateExperiments();

/// Fig. 1: many senders behind one switch, one receiver. Each connection has its own tunnel.
class ManyToOne {
 public:
  explicit ManyToOne(const RateParams& params);
  /// Adds a sender. Single-path controllers ("dctcp", "newreno", "bbr", ...) have one subflow.
  Network::Pair add(const std::string& controller);
  /// A random time up to one RTT, so that no two flows begin at the same moment.
  Duration startOffset() { return fromSeconds(params_.rtt * 1e-6 * hair_.uniform()); }
  SharedLink& bottleneck() { return *shared_.down; }
  /// Adds all subflows to `series`, labelled by their paths.
  void watch(Series& series) const;
  Network network;

 private:
  const RateParams& params_;
  Random hair_;
  Cable shared_;
};

/// Bulk: one download over WiFi and LTE.
Json runWanBulk(const RateParams& params);
/// Small exchanges beside the download of runWanBulk().
Json runInteractive(const RateParams& params);
/// One path with a capacity that changes every second.
Json runTrace(const RateParams& params);
/// One path with a policer.
Json runPolicer(const RateParams& params);
/// One path with a small buffer, measured from the start on.
Json runShallow(const RateParams& params);
/// A download from its start on, over paths that WanParams::network names.
Json runDownload(const RateParams& params);
/// A download from its start on, over one path with a policer: the worst loss in any 5 s.
Json runPoliced(const RateParams& params);
/// One tunnel beside tunnels with another controller at one drop-tail queue.
Json runCubicShare(const RateParams& params);
/// Slow paths that are full in both directions.
Json runTwoWay(const RateParams& params);
/// Two tunnels with the same controller, of which the second starts later.
Json runConverge(const RateParams& params);

}  // namespace braid::sim
