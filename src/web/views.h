#pragma once

// What braid-web makes of the daemon's answers: the page's views, and the metrics.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/containers.h"
#include "base/field.h"
#include "ctl/views/format.h"
#include "ctl/views/host_names.h"
#include "web/answers.h"

namespace braid {

/// Keeps the `most` rows for which `busy` returns the largest numbers, in their old order. Of rows
/// with equal numbers, the first are kept.
template <typename Row, typename Busy>
void keepBusiest(std::vector<Row>& rows, size_t most, Busy busy) {
  if (rows.size() <= most) return;
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < rows.size(); ++i) order.emplace_back(-busy(rows[i]), i);
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end());
  order.resize(most);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Row> kept;
  for (const auto& [negative, place] : order) kept.push_back(std::move(rows[place]));
  rows = std::move(kept);
}

/// What the page shows of the present: the daemon's figures, and the rates and losses computed from
/// two or more answers. Bounded: of many flows only the busiest are listed, of many peers and paths
/// those that are down, too.
class LiveView {
 public:
  static constexpr double kRateSeconds =
      2;  ///< a rate is the mean over at least this time, if known for that long
  static constexpr double kLossSeconds = 60;  ///< window of losses
  /// Seconds between older answers, of which only the counters are kept.
  static constexpr double kSpacing = 5;
  static constexpr size_t kPeers = 100, kPaths = 32, kFlows = 40;  ///< most that are listed

  /// `names`: of the hosts in the names of flows.
  explicit LiveView(HostNames names = HostNames(HostNames::known())) : names_(std::move(names)) {}

  /// Add answers in the order of their times. A failed answer is shown as a failure. The same
  /// answer twice counts once.
  void addStatus(Answers::Shared status);
  void addFlows(Answers::Shared flows);
  /// `peer`: lists only the paths and flows of this peer; empty: of all peers.
  nlohmann::json view(const std::string& peer) const;

 private:
  /// Of a path: bytes sent and received; packets sent, lost, wrongly declared lost, recovered. Of a
  /// peer: bytes sent and received; packets sent again, microseconds after their first sending, and
  /// never delivered.
  using Counters = std::array<uint64_t, 6>;
  using Counts = std::unordered_map<std::string, Counters>;
  struct Look {
    double at = 0;
    Counts counts;
  };
  /// How much the counters of an object grew, and in which time; empty before it was seen twice.
  struct Growth {
    double seconds = 0;
    Counters counters{};
  };

  static void keep(std::deque<Look>& looks, Look look, double window);
  static Growth growthOf(const std::deque<Look>& looks, const std::string& key, double seconds);
  static nlohmann::json rate(const Growth& growth, size_t which);
  static void putLosses(nlohmann::json& row, const Counters& counters);
  nlohmann::json totals(const nlohmann::json& status, const std::string& peer) const;
  nlohmann::json peerRow(const nlohmann::json& peer) const;
  nlohmann::json pathRow(const nlohmann::json& peer, const nlohmann::json& path) const;
  nlohmann::json peersOf(const nlohmann::json& status) const;
  nlohmann::json pathsOf(const nlohmann::json& status, const std::string& peer) const;
  void putFlows(nlohmann::json& out, const std::string& peer) const;

  Answers::Shared status_, flows_;  ///< the last ones; null: none yet
  std::deque<Look> looks_, flowLooks_;
  nlohmann::json::array_t flowRows_;  ///< of the last answer about flows
  HostNames names_;
};

/// What the page shows of the last hour: the steps of the paths, and the summary that `braidctl
/// explain` gives.
class PastView {
 public:
  using Done = std::function<void(nlohmann::json)>;
  /// Largest age of the answers: the daemon ends a step every 10 s.
  static constexpr Duration kAge = 9s;
  static constexpr size_t kPaths = 32;  ///< most that are listed: those that carried most
  static constexpr double kSeconds = 3600;

  /// Asks the daemon and calls back once. `peer`: asks for this peer only; empty: for all peers.
  static void tell(Answers& answers, const std::string& peer, Done done);
};

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
    uint64_t out = 0, in = 0, sent = 0, lost = 0, recovered = 0;
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

/// The metrics for Prometheus in its text format (version 0.0.4), made from an answer to
/// {"cmd":"status"}. All figures of the tables are there, and their names follow from the tables:
/// `srtt_ms` of a subflow is braid_path_srtt_seconds. Without an answer, braid_up is 0 and nothing
/// else is there.
std::string metricsText(const DaemonAnswer& status);

/// The name of a figure as a metric. `scope`: the kind of object, such as "peer".
std::string metricName(const std::string& scope, const FieldInfo& info);

}  // namespace braid
