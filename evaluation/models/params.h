#pragma once

// What the command line sets of an experiment's tunnels and losses.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simnet/link/link_options.h"
#include "tunnel/api/options.h"

namespace braid::sim {

/// How a link loses packets.
struct Loss {
  double rate = 0;   ///< share of all packets
  double burst = 1;  ///< mean length of a run; 1: independent losses, above 1: Gilbert-Elliott
  void apply(LinkOptions& link) const;
};

struct Params {
  std::string policy = "none";
  uint64_t seed = 1;
  /// Number of flows; incast: rounds, bulk: seconds; 0: the experiment's default
  size_t flows = 0;
  std::optional<double> loss;   ///< share of packets lost; unset: the experiment's default
  std::optional<double> burst;  ///< mean length of a run of losses
  std::optional<size_t> subflows;
  std::string controller;  ///< empty: the experiment's default
  std::string scheduler;   ///< empty: Braid's default
  bool testbed = false;    ///< use cofuso with the settings of CoFUSO's testbed (section 5.2)
  double minRto = 0;       ///< the papers' minimum RTO of the end hosts, ms; 0: as in RFC 9002
  size_t mMax = 0;         ///< most parities of a block; 0: Braid's default
  double codingRate = 0;   ///< cofuso: parities for each packet, (0, 1]; 0: the measured loss rate
  std::string sizes;       ///< distribution in evaluation/data; empty: the experiment's default
  std::optional<uint64_t> maxBytes;  ///< size of the largest flow
  bool warm = false;    ///< flows one after the other in one tunnel instead of one tunnel each
  bool edge = false;    ///< fabric: the access links lose packets instead of a path
  bool alone = false;   ///< mice: without the elephant
  size_t senders = 40;  ///< incast
};

/// The options of both gateways: datagrams of 1500 bytes without path MTU probes, and an initial
/// window of `initialWindow` datagrams.
TunnelOptions tunnelOptions(const Params& params, std::string_view controller,
                            size_t initialWindow = 10);

}  // namespace braid::sim
