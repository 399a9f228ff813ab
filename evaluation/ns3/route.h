#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::crosscheck {

constexpr uint32_t kArity = 4;          ///< k of the fat tree
constexpr uint32_t kHalf = kArity / 2;  ///< hosts per edge switch, and switches per layer of a pod
constexpr uint32_t kHosts = kArity * kHalf * kHalf;

/// The switches that packets of one direction pass, except the hosts' edge switches.
struct Way {
  /// Index of the aggregation switch, the same in both pods; unset between hosts of one edge
  /// switch.
  std::optional<uint32_t> aggregation;
  /// Index among that switch's core switches; unset within a pod.
  std::optional<uint32_t> core;
};

/// The route of a flow. Hosts are numbered pod by pod, and within a pod by edge switch.
struct Route {
  uint32_t from = 0, to = 0;  ///< hosts
  Way data, acks;
};

/// Reads a file with the routes that braid-sim writes as JSON: [{"from": 0, "to": 5, "aggregation":
/// 1, "core": 0, "back_aggregation": 0, "back_core": 1}, ...]; switches that a flow does not pass
/// are left out. Throws std::runtime_error when there are no such hosts or switches, a host sends
/// or receives twice, or a flow lacks a switch.
std::vector<Route> readRoutes(const std::string& file);

}  // namespace braid::crosscheck
