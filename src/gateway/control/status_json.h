#pragma once

// The figures of status.h and gateway_status.h as JSON, made from the tables beside the structs. Names carry their
// unit: _us, _ms, _s, _bytes, _bytes_per_s; a plain count has none. What is unknown or endless is null. Fields may
// be added; none changes its meaning.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "gateway/control/object_writer.h"
#include "tunnel/status.h"

namespace braid {

nlohmann::json gatewayJson(const GatewayStatus& gateway);
nlohmann::json shimJson(const ShimStatus& shim);
/// One subflow, under `braidctl paths`.
nlohmann::json subflowJson(const SubflowStatus& subflow);
nlohmann::json flowJson(const FlowStatus& flow);
/// One peer without its subflows and flows.
nlohmann::json peerJson(const PeerStatus& peer);

/// What an answer tells of each peer.
enum class PeerView : uint8_t {
  kStatus,    ///< its figures and "subflows"
  kPeers,     ///< its figures
  kPaths,     ///< "subflows"
  kFlows,     ///< "flows" and "streams", those that are listed, and how many there are
  kRecovery,  ///< what recovery did, M_max for the smallest RTT among its subflows, and "subflows"
};
RowObject peerObject(PeerView view, PeerStatus peer, const RecoveryOptions& recovery);
/// What stands beside "peers". kStatus: the figures of the whole gateway; kRecovery: K_max, M_max, the measured decode
/// times for 1, 2, ... M_max symbols, and the trace; the others: nothing.
nlohmann::json besidePeers(PeerView view, const GatewayStatus& gateway, const TunnelStatus& tunnel);

/// What is known of the past: the names of the paths and peers, "step_s", the events, the last stranger.
RowObject historyObject(const History& history);
/// The steps of one, oldest first: {"peer","path","columns":[NAME,...],"steps":[[FIGURE,...],...]}.
RowObject historyObject(const History::Path& path);
RowObject historyObject(const History::Peer& peer);

/// A load test, and the "subflows" of its peer now.
nlohmann::json testJson(const MeasureStatus& test, const PeerStatus& peer);
/// Whole answers about the peers of `tunnel`.
nlohmann::json peersJson(const TunnelStatus& tunnel);
nlohmann::json pathsJson(const TunnelStatus& tunnel);
nlohmann::json flowsJson(const TunnelStatus& tunnel);
nlohmann::json recoveryJson(const GatewayStatus& gateway, const TunnelStatus& tunnel);
nlohmann::json statusJson(const GatewayStatus& gateway, const TunnelStatus& tunnel);

}  // namespace braid
