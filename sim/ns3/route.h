#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace braid::crosscheck {

constexpr uint32_t kArity = 4;          ///< k of the fat tree
constexpr uint32_t kHalf = kArity / 2;  ///< hosts of an edge switch, switches of a layer of a pod
constexpr uint32_t kHosts = kArity * kHalf * kHalf;

/// The way of one flow, and of its ACKs back. Hosts are numbered pod by pod, in a pod by edge switch.
struct Route {
  uint32_t from = 0, to = 0;  ///< hosts
  /// Which aggregation switch, the same in both pods; none between hosts of one edge switch.
  std::optional<uint32_t> aggregation;
  /// Which of that switch's core switches; none within a pod.
  std::optional<uint32_t> core;
};

/// Every host sends to another and receives from another; each flow's switches are drawn as ECMP would.
/// From ns-3's generator, which must have its seed by then.
std::vector<Route> drawRoutes();

/// [{"from": 0, "to": 5, "aggregation": 1, "core": 0}, ...]; without what a flow does not pass.
nlohmann::ordered_json toJson(const std::vector<Route>& routes);
/// Of the file with that JSON. Throws std::runtime_error when there are no such hosts or switches, a host sends or
/// receives twice, or a flow lacks a switch.
std::vector<Route> readRoutes(const std::string& file);

}  // namespace braid::crosscheck
