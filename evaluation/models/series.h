#pragma once

// Time series of the subflows' rate control, the data of the plots.

#include <ostream>
#include <string>
#include <vector>

#include "evaluation/models/network.h"

namespace braid::sim {

struct SeriesOptions {
  std::ostream* out = nullptr;  ///< nullptr: no series
  Duration interval{};          ///< 0: the experiment's own
};

/// Samples subflows at regular times and writes one line with a JSON object for each:
/// {"t","subflow","window", "inflight","rate","delivery","rtt","queue"}. t: seconds since begin().
/// window, inflight: bytes. rate: bytes per second of the pacer, null without pacing. delivery:
/// bytes per second of the newest delivery rate sample. rtt: smoothed, seconds. queue: bytes that
/// wait at the bottleneck. Sampling does not change the run or its hash.
class Series {
 public:
  /// `usual`: the interval if the options set none.
  Series(World& world, const SeriesOptions& options, Duration usual = 10ms);
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

  /// Adds the subflow on which this pair's server sends over the client's uplink `uplink`. Call
  /// once the tunnel is up.
  void watch(std::string label, const Network::Pair& pair, const std::string& uplink,
             SharedLink& bottleneck);
  /// Takes the first sample now (t = 0) and continues from then on.
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

/// The number of the subflow over the client's uplink `uplink`. Throws when there is none.
unsigned subflowOn(const Network::Pair& pair, const std::string& uplink);
/// The status of a subflow at this pair's server.
SubflowStatus serverStatus(const Network::Pair& pair, unsigned subflow);

}  // namespace braid::sim
