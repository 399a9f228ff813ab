#include "evaluation/ns3/route.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace braid::crosscheck {

namespace {

uint32_t edgeOf(uint32_t host) {
  return host / kHalf;
}
uint32_t podOf(uint32_t host) {
  return edgeOf(host) / kHalf;
}

bool fits(const Way& way, const Route& route) {
  bool up = edgeOf(route.from) != edgeOf(route.to), over = podOf(route.from) != podOf(route.to);
  return way.aggregation.has_value() == up && way.core.has_value() == over &&
         way.aggregation.value_or(0) < kHalf && way.core.value_or(0) < kHalf;
}
bool isWhole(const Route& route) {
  return route.from < kHosts && route.to < kHosts && route.from != route.to &&
         fits(route.data, route) && fits(route.acks, route);
}

Way wayOf(const nlohmann::json& flow, const std::string& prefix) {
  auto optional = [&](const char* name) {
    std::string key = prefix + name;
    return flow.contains(key) ? std::optional<uint32_t>(flow.at(key)) : std::nullopt;
  };
  return {.aggregation = optional("aggregation"), .core = optional("core")};
}

}  // namespace

std::vector<Route> readRoutes(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file);
  std::vector<Route> routes;
  std::set<uint32_t> senders, receivers;
  for (const auto& flow : nlohmann::json::parse(stream)) {
    Route route{.from = flow.at("from"),
                .to = flow.at("to"),
                .data = wayOf(flow, ""),
                .acks = wayOf(flow, "back_")};
    if (!isWhole(route) || !senders.insert(route.from).second ||
        !receivers.insert(route.to).second) {
      throw std::runtime_error(file + ": no such flow: " + flow.dump());
    }
    routes.push_back(route);
  }
  return routes;
}

}  // namespace braid::crosscheck
