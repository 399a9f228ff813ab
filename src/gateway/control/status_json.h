#pragma once

// JSON of the figures in status.h and gateway_status.h, made from the tables beside the structs.
// Names carry their unit: _us, _ms, _s, _bytes, _bytes_per_s; a plain count has none. An unknown or
// unlimited value is null. Fields may be added; existing ones keep their meaning.
//
// An object that may have long lists is written a few rows at a time, so that packets do not wait
// while a long answer is written.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gateway/control/gateway_status.h"
#include "gateway/control/history.h"
#include "tunnel/api/status.h"

namespace braid {

/// A list in an object. Each row is made when it is written.
struct RowList {
  const char* name = nullptr;
  size_t size = 0;
  std::function<nlohmann::json(size_t)> row;
};

/// An object: its short members in `head`, and its lists.
struct RowObject {
  nlohmann::json head = nlohmann::json::object();
  std::vector<RowList> lists;

  /// The whole object at once.
  nlohmann::json whole() const;
};

/// JSON on one line. Texts may come from outside (interface names); bytes that are not UTF-8 are
/// replaced.
std::string jsonText(const nlohmann::json& value);

/// Writes one object in parts.
class ObjectWriter {
 public:
  explicit ObjectWriter(RowObject object) : object_(std::move(object)) {}

  /// Appends the next rows to `out`, at most `most` of them; the head counts as one row. Returns
  /// how many rows were appended.
  size_t write(std::string& out, size_t most);
  /// The whole object is written.
  bool done() const { return done_; }

 private:
  RowObject object_;
  bool begun_ = false, done_ = false;
  bool isOpen_ = false;        ///< the current list's beginning is written
  size_t list_ = 0, row_ = 0;  ///< the next row
};

nlohmann::json gatewayJson(const GatewayStatus& gateway);
nlohmann::json shimJson(const ShimStatus& shim);
/// One subflow, as in `braidctl paths`.
nlohmann::json subflowJson(const SubflowStatus& subflow);
nlohmann::json flowJson(const FlowStatus& flow);
/// One peer without its subflows and flows.
nlohmann::json peerJson(const PeerStatus& peer);

/// What an answer says of each peer.
enum class PeerView : uint8_t {
  kStatus,    ///< its figures and "subflows"
  kPeers,     ///< its figures
  kPaths,     ///< "subflows"
  kFlows,     ///< "flows" and "streams" that are listed, and how many there are in all
  kRecovery,  ///< what recovery did, M_max for the smallest RTT of its subflows, and "subflows"
};
RowObject peerObject(PeerView view, PeerStatus peer, const RecoveryOptions& recovery);
/// The members beside "peers". kStatus: the figures of the whole gateway. kRecovery: K_max, M_max,
/// the measured decode times for 1, 2, ... M_max symbols, and the trace. Other views: none.
nlohmann::json besidePeers(PeerView view, const GatewayStatus& gateway, const TunnelStatus& tunnel);

/// The index of the history: the names of the paths and peers, "step_s", the events, and the last
/// failed handshake of an unknown peer.
RowObject historyObject(const History& history);
/// The steps of one path, oldest first:
/// {"peer","path","columns":[NAME,...],"steps":[[FIGURE,...],...]}.
RowObject historyObject(const History::Path& path);
RowObject historyObject(const History::Peer& peer);

/// A load test, and the present "subflows" of its peer.
nlohmann::json testJson(const MeasureStatus& test, const PeerStatus& peer);
/// Whole answers about the peers of `tunnel`, made at once.
nlohmann::json peersJson(const TunnelStatus& tunnel);
nlohmann::json pathsJson(const TunnelStatus& tunnel);
nlohmann::json flowsJson(const TunnelStatus& tunnel);
nlohmann::json recoveryJson(const GatewayStatus& gateway, const TunnelStatus& tunnel);
nlohmann::json statusJson(const GatewayStatus& gateway, const TunnelStatus& tunnel);

}  // namespace braid
