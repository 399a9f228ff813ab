#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "web/answers.h"

namespace braid {

/// What the page shows of the present: the daemon's figures, and the rates and losses computed from
/// two or more answers. Bounded: of many peers, paths and flows, only the busiest are listed.
class LiveView {
 public:
  static constexpr double kRateSeconds =
      2;  ///< a rate is the mean over at least this time, if known for that long
  static constexpr double kLossSeconds = 60;  ///< window of losses
  /// Seconds between older answers, of which only the counters are kept.
  static constexpr double kSpacing = 5;
  static constexpr size_t kPeers = 100, kPaths = 32, kFlows = 40;  ///< most that are listed

  /// Add answers in the order of their times. A failed answer is shown as a failure. The same
  /// answer twice counts once.
  void addStatus(Answers::Shared status);
  void addFlows(Answers::Shared flows);
  /// `peer`: lists only the paths and flows of this peer; empty: of all peers.
  nlohmann::json view(const std::string& peer) const;

 private:
  /// Bytes sent and received; packets sent, lost, wrongly declared lost, recovered.
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
  nlohmann::json flowsOf(const std::string& peer, const char* list) const;

  Answers::Shared status_, flows_;  ///< the last ones; null: none yet
  std::deque<Look> looks_, flowLooks_;
};

}  // namespace braid
