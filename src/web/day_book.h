#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/containers.h"
#include "web/answers.h"

namespace braid {

/// What the paths carried and lost in the last 24 hours; the daemon itself keeps only one hour.
/// Bounded. Kept in this process: it starts empty with the process, and continues when the daemon
/// restarts.
class DayStore {
 public:
  static constexpr Duration kLook = 30s;  ///< time between two samples
  static constexpr double kStep = 120;    ///< seconds
  static constexpr size_t kSteps = 720;   ///< per path
  /// Most paths that are kept, about 8 MB; further ones are ignored.
  static constexpr size_t kMostPaths = 128;
  static constexpr size_t kTold = 32;  ///< paths in one answer: those that carried most

  /// Adds an answer to {"cmd":"status"}; a failed one leaves a gap.
  void add(const DaemonAnswer& status);
  /// {"step_s", "columns", "paths": [{"peer", "path", "steps"}]}, oldest first. `peer`: only the
  /// paths of this peer; empty: of all peers.
  nlohmann::json tell(const std::string& peer) const;
  size_t paths() const { return paths_.size(); }

 private:
  struct Step {
    double until = 0, seconds = 0;
    uint64_t out = 0, in = 0, sent = 0, lost = 0, left = 0;
    double rtt = 0, queue = 0;  ///< ms, the largest that was seen
    std::string state;          ///< the worst that was seen
  };
  /// The daemon's counters of a path at the last sample.
  struct Total {
    uint64_t out = 0, in = 0, sent = 0, lost = 0, spurious = 0, recovered = 0;
  };
  struct Path {
    std::string peer, name;
    double seen = 0;  ///< time of the last sample; 0: never
    Total total;
    Step step;  ///< the current step
    Ring<Step> steps;
    uint64_t bytes() const;  ///< sent and received in `steps`
  };

  void look(const nlohmann::json& peer, double at);
  Path* pathOf(const std::string& peer, const std::string& name, double at);
  static void count(Path& path, const Total& now, double at);

  std::vector<Path> paths_;
};

}  // namespace braid
