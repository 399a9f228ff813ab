#pragma once

// The scenarios that run in both simulators. evaluation/ns3/README.md describes each exactly.

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "evaluation/ns3/network.h"
#include "evaluation/ns3/route.h"
#include "evaluation/tcp/tcp_params.h"

namespace braid::crosscheck {

using Json = nlohmann::ordered_json;
using sim::TcpParams;
using sim::TcpSetting;

/// The settings of switch ports. They mark only with dctcp.
inline PortSettings portOf(const TcpParams& p, const TcpSetting& setting) {
  PortSettings port{.packets = static_cast<uint32_t>(setting.queue), .threshold = {}};
  if (p.control == "dctcp") port.threshold = static_cast<uint32_t>(p.threshold);
  return port;
}

/// One bulk flow over a path with random loss of data packets.
Json runLossyPath(const TcpParams& params);
/// Long flows that meet at one port.
Json runDctcpQueue(const TcpParams& params);
/// One round of simultaneous answers that meet at one port.
Json runIncast(const TcpParams& params);
/// Each host of a fat tree sends one long flow to another.
Json runPermutation(const TcpParams& params, const std::vector<Route>& routes);

}  // namespace braid::crosscheck
