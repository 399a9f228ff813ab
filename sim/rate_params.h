#pragma once

// The parameters of the rate control experiments, and the description of an experiment.

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/rate/controller.h"
#include "sim/figures.h"
#include "sim/series.h"

namespace braid::sim {

/// Parameters of the experiments in the last part of docs/evaluation.md. Unset: the experiment's
/// default.
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

}  // namespace braid::sim
