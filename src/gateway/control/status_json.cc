#include "gateway/control/status_json.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <memory>
#include <nlohmann/json.hpp>

namespace braid {

using nlohmann::json;

json RowObject::whole() const {
  json out = head;
  for (const RowList& list : lists) {
    json rows = json::array();
    for (size_t i = 0; i < list.size; ++i) rows.push_back(list.row(i));
    out[list.name] = std::move(rows);
  }
  return out;
}

std::string jsonText(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

size_t ObjectWriter::write(std::string& out, size_t most) {
  size_t written = 0;
  if (!begun_) {
    begun_ = true;
    std::string head = jsonText(object_.head);
    head.pop_back();  // the brace
    out += head;
    written = 1;
  }
  while (list_ < object_.lists.size()) {
    const RowList& list = object_.lists[list_];
    if (!isOpen_) {
      isOpen_ = true;
      bool first = list_ == 0 && object_.head.empty();
      out.append(first ? "\"" : ",\"").append(list.name).append("\":[");
    }
    for (; row_ < list.size && written < most; ++row_, ++written) {
      if (row_ > 0) out += ',';
      out += jsonText(list.row(row_));
    }
    if (row_ < list.size) return written;
    out += ']';
    isOpen_ = false;
    row_ = 0;
    ++list_;
  }
  out += '}';
  done_ = true;
  return written;
}

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
json valueJson(const FieldInfo& info, const std::optional<Duration>& d) {
  return d ? valueJson(info, *d) : json(nullptr);
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
// For a list whose items are not objects: its length.
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
  forEachField(object, [&](const FieldInfo& info, const auto& value) {
    out[info.name] = valueJson(info, value);
  });
  return out;
}

// ---- other members of answers

json peerHead(const PeerStatus& peer) {
  return {{infoOf<&PeerStatus::name>().name, peer.name}, {infoOf<&PeerStatus::up>().name, peer.up}};
}

// The smallest RTT of the subflows in use; 0: none has one.
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

RowList subflowRows(const std::shared_ptr<PeerStatus>& peer) {
  return {"subflows", peer->subflows.size(),
          [peer](size_t i) { return subflowJson(peer->subflows[i]); }};
}

json recoveryHead(const PeerStatus& peer, const RecoveryOptions& options) {
  json p = peerHead(peer);
  p.update(toJson<RecoveryStatus>(peer));
  Duration rtt = smallestRtt(peer);
  bool known = rtt > Duration::zero();
  size_t m = maxParities(options, rtt);
  p["m_max"] = known ? json(m) : json(nullptr);
  p["m_max_decode_us"] = known ? microseconds(options.decodeTime[m - 1]) : json(nullptr);
  return p;
}

RowObject flowsObject(const std::shared_ptr<PeerStatus>& peer) {
  RowObject out{peerHead(*peer), {}};
  out.head[infoOf<&PeerStatus::flowCount>().name] = peer->flowCount;
  out.head[infoOf<&PeerStatus::streamCount>().name] = peer->streamCount;
  out.lists = {
      {"flows", peer->flows.size(), [peer](size_t i) { return flowJson(peer->flows[i]); }},
      {"streams", peer->streams.size(), [peer](size_t i) { return toJson(peer->streams[i]); }}};
  return out;
}

// Rows without names, because they are short. They are copied, because the ring changes while they
// are written.
template <typename Step>
RowObject stepsObject(const Ring<Step>& steps) {
  json columns = json::array();
  forEachField(Step{}, [&](const FieldInfo& info, const auto&) { columns.push_back(info.name); });
  auto kept = std::make_shared<std::vector<Step>>();
  kept->reserve(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) kept->push_back(steps[i]);
  auto row = [kept](size_t i) {
    json out = json::array();
    forEachField((*kept)[i], [&](const FieldInfo& info, const auto& value) {
      out.push_back(valueJson(info, value));
    });
    return out;
  };
  return {{{"columns", std::move(columns)}}, {{"steps", kept->size(), std::move(row)}}};
}

json wholeAnswer(PeerView view, const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  json out = besidePeers(view, gateway, tunnel), list = json::array();
  for (const PeerStatus& peer : tunnel.peers)
    list.push_back(peerObject(view, peer, gateway.recovery).whole());
  out["peers"] = std::move(list);
  return out;
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

RowObject peerObject(PeerView view, PeerStatus status, const RecoveryOptions& recovery) {
  auto peer = std::make_shared<PeerStatus>(std::move(status));
  switch (view) {
    case PeerView::kStatus:
      return {peerJson(*peer), {subflowRows(peer)}};
    case PeerView::kPeers:
      return {peerJson(*peer), {}};
    case PeerView::kPaths:
      return {peerHead(*peer), {subflowRows(peer)}};
    case PeerView::kFlows:
      return flowsObject(peer);
    case PeerView::kRecovery:
      return {recoveryHead(*peer, recovery), {subflowRows(peer)}};
  }
  return {};
}

json besidePeers(PeerView view, const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  json out = json::object();
  if (view == PeerView::kStatus) {
    out = toJson(tunnel);
    out["gateway"] = gatewayJson(gateway);
    out["streams"] = toJson(gateway.streams);
    out["host_drops"] = toJson(gateway.drops);
    out["host_traffic"] = toJson(gateway.traffic);
  } else if (view == PeerView::kRecovery) {
    const RecoveryOptions& options = gateway.recovery;
    json times = json::array();
    for (size_t i = 0; i < std::min(options.mMax, options.decodeTime.size()); ++i)
      times.push_back(microseconds(options.decodeTime[i]));
    out = {{"k_max", options.kMax}, {"m_max", options.mMax}, {"decode_us", std::move(times)}};
    out["trace"] = toJson(gateway.trace);
  }
  return out;
}

RowObject historyObject(const History& history) {
  json paths = json::array(), peers = json::array();
  for (const History::Path& p : history.paths())
    paths.push_back({{"peer", p.peer}, {"path", p.name}, {"bytes", p.bytes}});
  for (const History::Peer& p : history.peers()) peers.push_back(p.name);
  auto kept = std::make_shared<std::vector<PastEvent>>();
  kept->reserve(history.events().size());
  for (size_t i = 0; i < history.events().size(); ++i) kept->push_back(history.events()[i]);
  json head = {
      {"step_s", toSeconds(History::kStep)},
      {"paths", std::move(paths)},
      {"peers", std::move(peers)},
      {"formerly", toJson(history.formerlyRefused())},
      {"stranger", history.stranger().kind.empty() ? json(nullptr) : toJson(history.stranger())},
      {"untold", history.untold()}};
  return {std::move(head),
          {{"events", kept->size(), [kept](size_t i) { return toJson((*kept)[i]); }}}};
}

RowObject historyObject(const History::Path& path) {
  RowObject out = stepsObject(path.steps);
  out.head["peer"] = path.peer;
  out.head["path"] = path.name;
  return out;
}

RowObject historyObject(const History::Peer& peer) {
  RowObject out = stepsObject(peer.steps);
  out.head["peer"] = peer.name;
  return out;
}

json peersJson(const TunnelStatus& tunnel) {
  return wholeAnswer(PeerView::kPeers, {}, tunnel);
}

json pathsJson(const TunnelStatus& tunnel) {
  return wholeAnswer(PeerView::kPaths, {}, tunnel);
}

json flowsJson(const TunnelStatus& tunnel) {
  return wholeAnswer(PeerView::kFlows, {}, tunnel);
}

json recoveryJson(const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  return wholeAnswer(PeerView::kRecovery, gateway, tunnel);
}

json statusJson(const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  return wholeAnswer(PeerView::kStatus, gateway, tunnel);
}

json testJson(const MeasureStatus& test, const PeerStatus& peer) {
  json out = toJson(test);
  out["subflows"] = json::array();
  for (const SubflowStatus& subflow : peer.subflows)
    out["subflows"].push_back(subflowJson(subflow));
  return out;
}

}  // namespace braid
