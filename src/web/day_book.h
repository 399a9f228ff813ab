#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/ring.h"
#include "web/answers.h"

namespace braid {

/// What the paths carried and lost in the last 24 hours: the daemon itself keeps an hour. Bounded, and of this process:
/// it begins anew with it, and goes on when the daemon is restarted.
class DayBook {
 public:
  static constexpr Duration kLook = 30s;     ///< between two answers that are taken in
  static constexpr double kStep = 120;       ///< seconds
  static constexpr size_t kSteps = 720;      ///< of a path
  static constexpr size_t kMostPaths = 128;  ///< of further ones nothing is kept; ours: about 8 MB
  static constexpr size_t kTold = 32;        ///< paths in one answer: those that carried most

  /// An answer to {"cmd":"status"}; a failed one is a gap.
  void add(const DaemonAnswer& status);
  /// {"step_s", "columns", "paths": [{"peer", "path", "steps"}]}, oldest first. `peer`: whose; empty: of all.
  nlohmann::json tell(const std::string& peer) const;
  size_t paths() const { return paths_.size(); }

 private:
  struct Step {
    double until = 0, seconds = 0;
    uint64_t out = 0, in = 0, sent = 0, lost = 0, left = 0;
    double rtt = 0, queue = 0;  ///< ms, the most that was seen
    std::string state;          ///< the worst that was seen
  };
  /// What the daemon has counted of a path so far.
  struct Total {
    uint64_t out = 0, in = 0, sent = 0, lost = 0, spurious = 0, recovered = 0;
  };
  struct Path {
    std::string peer, name;
    double seen = 0;  ///< 0: never
    Total total;
    Step step;  ///< that is not over
    Ring<Step> steps;
    uint64_t bytes() const;  ///< sent and received in them
  };

  void look(const nlohmann::json& peer, double at);
  Path* pathOf(const std::string& peer, const std::string& name, double at);
  static void count(Path& path, const Total& now, double at);

  std::vector<Path> paths_;
};

}  // namespace braid
