#pragma once

// What a subflow's rate control does over time: the material of the plots.

#include <ostream>
#include <string>
#include <vector>

#include "sim/network.h"

namespace braid::sim {

struct SeriesOptions {
  std::ostream* out = nullptr;  ///< nullptr: no series
  Duration interval{};          ///< 0: the experiment's own
};

/// Looks at subflows at regular times and writes one JSON object a line for each: {"t","subflow","window",
/// "inflight","rate","delivery","rtt","queue"}. Seconds since begin(), bytes, bytes per second (rate: of the
/// pacer, null when it does not pace; delivery: of the newest sample), rtt: smoothed, seconds; queue: bytes
/// that wait at the bottleneck. It changes nothing of a run, its hash included.
class Series {
 public:
  /// `usual`: the interval unless the options name one.
  Series(World& world, const SeriesOptions& options, Duration usual = 10ms);
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

  /// The subflow by which this pair's server sends over what its client calls `uplink`. Once the tunnel is
  /// up.
  void watch(std::string label, const Network::Pair& pair, const std::string& uplink, SharedLink& bottleneck);
  /// Looks now, which is t = 0, and from now on.
  void begin();

 private:
  struct Watched {
    std::string label;
    const Node* server;
    unsigned subflow;
    SharedLink* bottleneck;
  };
  void look();

  World& world_;
  std::ostream* out_;
  Duration interval_;
  Time begun_{};
  std::vector<Watched> watched_;
};

/// The number of that subflow. Throws when there is none.
unsigned subflowOn(const Network::Pair& pair, const std::string& uplink);
/// How this pair's server stands on a subflow.
SubflowStatus serverStatus(const Network::Pair& pair, unsigned subflow);

}  // namespace braid::sim
