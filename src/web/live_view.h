#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "web/answers.h"

namespace braid {

/// What the page shows of now: the daemon's figures, and the rates and losses that follow from two or more answers.
/// Bounded: what is told of many peers, paths and flows are the busiest.
class LiveView {
 public:
  static constexpr double kRateSeconds = 2;   ///< a rate is the mean of so long at least, when that is known
  static constexpr double kLossSeconds = 60;  ///< of losses
  static constexpr double kSpacing = 5;       ///< between answers of which only the counters are kept
  static constexpr size_t kPeers = 100, kPaths = 32, kFlows = 40;  ///< that are told

  /// Take answers in the order of their times; a failed one is shown as one. The same twice counts once.
  void addStatus(Answers::Shared status);
  void addFlows(Answers::Shared flows);
  /// `peer`: whose paths and flows are told; empty: of all.
  nlohmann::json view(const std::string& peer) const;

 private:
  /// Bytes out and in, packets sent, lost, lost in error, recovered.
  using Counters = std::array<uint64_t, 6>;
  using Counts = std::unordered_map<std::string, Counters>;
  struct Look {
    double at = 0;
    Counts counts;
  };
  /// What was counted meanwhile of something; nothing before it was seen twice.
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

  Answers::Shared status_, flows_;  ///< the last ones; null: none came
  std::deque<Look> looks_, flowLooks_;
};

}  // namespace braid
