#pragma once

// Plain TCP in virtual time, without Braid: what the papers compare with, in scenarios small enough that
// another simulator can run the same.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/figures.h"

namespace braid::sim {

/// Unset: the experiment's own figure.
struct TcpParams {
  std::string control = "newreno";   ///< tcp::controlNames()
  std::string recovery = "current";  ///< tcp::recoveryNames()
  uint64_t seed = 1;
  std::optional<double> rate;     ///< bit/s, of every link
  std::optional<double> rtt;      ///< us, without queues and transmission
  std::optional<double> seconds;  ///< lossy-path, dctcp-queue: from the first SYN on
  std::optional<size_t> senders;  ///< dctcp-queue, incast
  std::optional<size_t> queue;    ///< packets that wait at the bottleneck
  double loss = 0.01;             ///< lossy-path: of data packets
  size_t threshold = 20;          ///< K, packets; with dctcp
  uint64_t bytes = 64 << 10;      ///< incast: of a sender
  size_t rounds = 20;             ///< incast
  double minRto = 200;            ///< ms
  bool delayedAcks = true;
  bool timestamps = true;
};

struct TcpExperiment {
  const char* name;
  const char* what;
  Json (*run)(const TcpParams&);
};
std::span<const TcpExperiment> tcpExperiments();

}  // namespace braid::sim
