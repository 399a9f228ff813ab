#include "sim/ns3/route.h"

#include <ns3/ptr.h>
#include <ns3/random-variable-stream.h>
#include <algorithm>
#include <fstream>
#include <numeric>
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

bool isWhole(const Route& route) {
  bool up = edgeOf(route.from) != edgeOf(route.to), over = podOf(route.from) != podOf(route.to);
  return route.from < kHosts && route.to < kHosts && route.from != route.to &&
         route.aggregation.has_value() == up && route.core.has_value() == over &&
         route.aggregation.value_or(0) < kHalf && route.core.value_or(0) < kHalf;
}

}  // namespace

std::vector<Route> drawRoutes() {
  auto random = ns3::CreateObject<ns3::UniformRandomVariable>();
  std::vector<uint32_t> to(kHosts);
  auto sendsToItself = [&to] {
    for (uint32_t host = 0; host < kHosts; ++host) {
      if (to[host] == host) return true;
    }
    return false;
  };
  std::iota(to.begin(), to.end(), 0U);
  while (sendsToItself()) {
    for (uint32_t i = kHosts - 1; i > 0; --i) std::swap(to[i], to[random->GetInteger(0, i)]);
  }
  std::vector<Route> routes;
  for (uint32_t host = 0; host < kHosts; ++host) {
    Route route{.from = host, .to = to[host], .aggregation = {}, .core = {}};
    if (edgeOf(host) != edgeOf(to[host])) route.aggregation = random->GetInteger(0, kHalf - 1);
    if (podOf(host) != podOf(to[host])) route.core = random->GetInteger(0, kHalf - 1);
    routes.push_back(route);
  }
  return routes;
}

nlohmann::ordered_json toJson(const std::vector<Route>& routes) {
  auto list = nlohmann::ordered_json::array();
  for (const Route& route : routes) {
    nlohmann::ordered_json each{{"from", route.from}, {"to", route.to}};
    if (route.aggregation) each["aggregation"] = *route.aggregation;
    if (route.core) each["core"] = *route.core;
    list.push_back(each);
  }
  return list;
}

std::vector<Route> readRoutes(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file);
  std::vector<Route> routes;
  std::set<uint32_t> senders, receivers;
  for (const auto& each : nlohmann::json::parse(stream)) {
    auto optional = [&each](const char* key) {
      return each.contains(key) ? std::optional<uint32_t>(each.at(key)) : std::nullopt;
    };
    Route route{.from = each.at("from"),
                .to = each.at("to"),
                .aggregation = optional("aggregation"),
                .core = optional("core")};
    if (!isWhole(route) || !senders.insert(route.from).second || !receivers.insert(route.to).second) {
      throw std::runtime_error(file + ": no such flow: " + each.dump());
    }
    routes.push_back(route);
  }
  return routes;
}

}  // namespace braid::crosscheck
