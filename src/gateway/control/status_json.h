#pragma once

// The figures of status.h and gateway_status.h as JSON, made from the tables beside the structs. Names carry their
// unit: _us, _ms, _s, _bytes, _bytes_per_s; a plain count has none. What is unknown or endless is null. Fields may
// be added; none changes its meaning.

#include <nlohmann/json_fwd.hpp>

#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "tunnel/status.h"

namespace braid {

nlohmann::json gatewayJson(const GatewayStatus& gateway);
nlohmann::json shimJson(const ShimStatus& shim);
/// One subflow, under `braidctl paths`.
nlohmann::json subflowJson(const SubflowStatus& subflow);
nlohmann::json flowJson(const FlowStatus& flow);
/// One peer without its subflows and flows.
nlohmann::json peerJson(const PeerStatus& peer);

/// {"peers":[...]}: the peers; the peers with "subflows"; the peers with "flows", those that are
/// listed, and "flow_count", how many there are.
nlohmann::json peersJson(const TunnelStatus& tunnel);
nlohmann::json pathsJson(const TunnelStatus& tunnel);
nlohmann::json flowsJson(const TunnelStatus& tunnel);
/// The peers with what recovery did, M_max for the smallest RTT among their subflows, and "subflows"; K_max,
/// M_max and the measured decode times for 1, 2, ... M_max symbols; the trace.
nlohmann::json recoveryJson(const GatewayStatus& gateway, const TunnelStatus& tunnel);
/// What is known of the past: the names of the paths and peers, "step_s", the events, the last stranger.
nlohmann::json historyJson(const History& history);
/// The steps of one, oldest first: {"peer","path","columns":[NAME,...],"steps":[[FIGURE,...],...]}.
nlohmann::json historyJson(const History::Path& path);
nlohmann::json historyJson(const History::Peer& peer);
/// A load test, and the "subflows" of its peer now.
nlohmann::json testJson(const MeasureStatus& test, const PeerStatus& peer);
/// Everything but the flows.
nlohmann::json statusJson(const GatewayStatus& gateway, const TunnelStatus& tunnel);

}  // namespace braid
