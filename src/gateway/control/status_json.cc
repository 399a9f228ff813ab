#include "gateway/control/status_json.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

using nlohmann::json;

// ---- any struct with a table

template <HasFields T>
json toJson(const T& object);

json valueJson(const FieldInfo& info, const std::string& text) {
  return info.kind == FieldKind::kRemark && text.empty() ? json(nullptr) : json(text);
}
json valueJson(const FieldInfo&, const std::vector<std::string>& texts) {
  return texts;
}
json valueJson(const FieldInfo&, std::integral auto number) {
  return number;
}
json valueJson(const FieldInfo&, double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}
json valueJson(const FieldInfo& info, Duration d) {
  return info.unit == FieldUnit::kSeconds ? toSeconds(d) : toMilliseconds(d);
}
json valueJson(const FieldInfo&, PathUse use) {
  return useName(use);
}
json valueJson(const FieldInfo&, const DropCounts& counts) {
  json out = json::object();
  for (size_t i = 0; i < kDropCount; ++i) out[kDrops[i].info.name] = counts[i];
  return out;
}
json valueJson(const FieldInfo&, const std::array<ActuatorCounts, kActuators>& actuators) {
  json list = json::array();
  for (size_t i = 0; i < kActuators; ++i) {
    list.push_back(toJson(actuators[i]));
    list.back()["name"] = actuatorName(static_cast<Actuator>(i));
  }
  return list;
}
// Of a list that is no object: how long it is.
template <HasFields T>
json valueJson(const FieldInfo& info, const std::vector<T>& list) {
  if (info.kind != FieldKind::kObject) return list.size();
  json out = json::array();
  for (const T& each : list) out.push_back(toJson(each));
  return out;
}
template <HasFields T>
json valueJson(const FieldInfo&, const std::optional<T>& object) {
  return object ? toJson(*object) : json(nullptr);
}
template <HasFields T>
json valueJson(const FieldInfo&, const T& object) {
  return toJson(object);
}
template <HasFields T>
json toJson(const T& object) {
  json out = json::object();
  forEachField(object,
               [&](const FieldInfo& info, const auto& value) { out[info.name] = valueJson(info, value); });
  return out;
}

// ---- what the answers have beside

json peerHead(const PeerStatus& peer) {
  return {{infoOf<&PeerStatus::name>().name, peer.name}, {infoOf<&PeerStatus::up>().name, peer.up}};
}

// The smallest of the subflows in use; 0: none has one.
Duration smallestRtt(const PeerStatus& peer) {
  Duration smallest{};
  for (const SubflowStatus& s : peer.subflows) {
    bool known = s.state == "active" && s.srtt > Duration::zero();
    if (known && (smallest == Duration::zero() || s.srtt < smallest)) smallest = s.srtt;
  }
  return smallest;
}

json microseconds(Duration d) {
  return d > Duration::zero() ? json(static_cast<double>(d.count()) / 1000) : json(nullptr);
}

json subflowsJson(const PeerStatus& peer) {
  json list = json::array();
  for (const SubflowStatus& subflow : peer.subflows) list.push_back(subflowJson(subflow));
  return list;
}

// Rows without names: an hour of a path is written in a fraction of a millisecond.
template <typename Step>
json stepsJson(const Ring<Step>& steps) {
  json columns = json::array(), rows = json::array();
  forEachField(Step{}, [&](const FieldInfo& info, const auto&) { columns.push_back(info.name); });
  for (size_t i = 0; i < steps.size(); ++i) {
    json row = json::array();
    forEachField(steps[i],
                 [&](const FieldInfo& info, const auto& value) { row.push_back(valueJson(info, value)); });
    rows.push_back(std::move(row));
  }
  return {{"columns", std::move(columns)}, {"steps", std::move(rows)}};
}

template <typename Make>
json peersWith(const TunnelStatus& tunnel, Make make) {
  json list = json::array();
  for (const PeerStatus& peer : tunnel.peers) list.push_back(make(peer));
  return {{"peers", std::move(list)}};
}

}  // namespace

json gatewayJson(const GatewayStatus& gateway) {
  return toJson(gateway);
}

json shimJson(const ShimStatus& shim) {
  return toJson(shim);
}

json subflowJson(const SubflowStatus& subflow) {
  return toJson(subflow);
}

json flowJson(const FlowStatus& flow) {
  return toJson(flow);
}

json peerJson(const PeerStatus& peer) {
  return toJson(peer);
}

json peersJson(const TunnelStatus& tunnel) {
  return peersWith(tunnel, peerJson);
}

json pathsJson(const TunnelStatus& tunnel) {
  return peersWith(tunnel, [](const PeerStatus& peer) {
    json out = peerHead(peer);
    out["subflows"] = subflowsJson(peer);
    return out;
  });
}

json flowsJson(const TunnelStatus& tunnel) {
  return peersWith(tunnel, [](const PeerStatus& peer) {
    json list = json::array();
    for (const FlowStatus& flow : peer.flows) list.push_back(flowJson(flow));
    json out = peerHead(peer);
    out[infoOf<&PeerStatus::flowCount>().name] = peer.flowCount;
    out["flows"] = std::move(list);
    out[infoOf<&PeerStatus::streamCount>().name] = peer.streamCount;
    json streams = json::array();
    for (const StreamStatus& stream : peer.streams) streams.push_back(toJson(stream));
    out["streams"] = std::move(streams);
    return out;
  });
}

json recoveryJson(const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  const RecoveryOptions& options = gateway.recovery;
  json out = peersWith(tunnel, [&](const PeerStatus& peer) {
    json p = peerHead(peer);
    p.update(toJson<RecoveryStatus>(peer));
    Duration rtt = smallestRtt(peer);
    bool known = rtt > Duration::zero();
    size_t m = maxParities(options, rtt);
    p["m_max"] = known ? json(m) : json(nullptr);
    p["m_max_decode_us"] = known ? microseconds(options.decodeTime[m - 1]) : json(nullptr);
    p["subflows"] = subflowsJson(peer);
    return p;
  });
  json times = json::array();
  for (size_t i = 0; i < std::min(options.mMax, options.decodeTime.size()); ++i)
    times.push_back(microseconds(options.decodeTime[i]));
  out["k_max"] = options.kMax;
  out["m_max"] = options.mMax;
  out["decode_us"] = std::move(times);
  out["trace"] = toJson(gateway.trace);
  return out;
}

json historyJson(const History& history) {
  json paths = json::array(), peers = json::array(), events = json::array();
  for (const History::Path& p : history.paths()) paths.push_back({{"peer", p.peer}, {"path", p.name}});
  for (const History::Peer& p : history.peers()) peers.push_back(p.name);
  for (size_t i = 0; i < history.events().size(); ++i) events.push_back(toJson(history.events()[i]));
  return {{"step_s", toSeconds(History::kStep)},
          {"paths", std::move(paths)},
          {"peers", std::move(peers)},
          {"events", std::move(events)},
          {"stranger", history.stranger().kind.empty() ? json(nullptr) : toJson(history.stranger())},
          {"untold", history.untold()}};
}

json historyJson(const History::Path& path) {
  json out = stepsJson(path.steps);
  out["peer"] = path.peer;
  out["path"] = path.name;
  return out;
}

json historyJson(const History::Peer& peer) {
  json out = stepsJson(peer.steps);
  out["peer"] = peer.name;
  return out;
}

json testJson(const MeasureStatus& test, const PeerStatus& peer) {
  json out = toJson(test);
  out["subflows"] = subflowsJson(peer);
  return out;
}

json statusJson(const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  json out = peersWith(tunnel, [](const PeerStatus& peer) {
    json p = peerJson(peer);
    p["subflows"] = subflowsJson(peer);
    return p;
  });
  out.update(toJson(tunnel));
  out["gateway"] = gatewayJson(gateway);
  out["streams"] = toJson(gateway.streams);
  out["host_drops"] = toJson(gateway.drops);
  out["host_traffic"] = toJson(gateway.traffic);
  return out;
}

}  // namespace braid
