#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::crosscheck {

constexpr uint32_t kArity = 4;          ///< k of the fat tree
constexpr uint32_t kHalf = kArity / 2;  ///< hosts of an edge switch, switches of a layer of a pod
constexpr uint32_t kHosts = kArity * kHalf * kHalf;

/// The switches that packets of one direction pass, beside those of the hosts.
struct Way {
  /// Which aggregation switch, the same in both pods; none between hosts of one edge switch.
  std::optional<uint32_t> aggregation;
  /// Which of that switch's core switches; none within a pod.
  std::optional<uint32_t> core;
};

/// A flow. Hosts are numbered pod by pod, in a pod by edge switch.
struct Route {
  uint32_t from = 0, to = 0;  ///< hosts
  Way data, acks;
};

/// Of the file with the JSON that sim_tcp writes of its flows: [{"from": 0, "to": 5, "aggregation": 1, "core": 0,
/// "back_aggregation": 0, "back_core": 1}, ...]; without what a flow does not pass. Throws std::runtime_error when there
/// are no such hosts or switches, a host sends or receives twice, or a flow lacks a switch.
std::vector<Route> readRoutes(const std::string& file);

}  // namespace braid::crosscheck
