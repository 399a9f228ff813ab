#include "gateway/control/status_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace braid {
namespace {

using nlohmann::json;

json finite(double v) {
  return std::isfinite(v) ? json(v) : json(nullptr);
}

json peerHead(const PeerStatus& peer) {
  return {{"name", peer.name}, {"up", peer.up}};
}

json peerRecovery(const PeerStatus& peer) {
  return {{"recovery", peer.recovery},
          {"blocks", peer.blocks},
          {"parities_received", peer.paritiesReceived},
          {"blocks_decoded", peer.blocksDecoded},
          {"packets_decoded", peer.packetsDecoded},
          {"blocks_evicted", peer.blocksEvicted}};
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

json traceJson(const TraceStatus& t) {
  return {{"on", t.on},
          {"written", t.written},
          {"dropped", t.dropped},
          {"problem", t.problem.empty() ? json(nullptr) : json(t.problem)}};
}

json subflowsJson(const PeerStatus& peer) {
  json list = json::array();
  for (const SubflowStatus& subflow : peer.subflows) list.push_back(subflowJson(subflow));
  return list;
}

template <typename Make>
json peersWith(const TunnelStatus& tunnel, Make make) {
  json list = json::array();
  for (const PeerStatus& peer : tunnel.peers) list.push_back(make(peer));
  return {{"peers", std::move(list)}};
}

}  // namespace

json hostDropsJson(const HostDrops& d) {
  return {{"socket_overflow", d.socketOverflow},
          {"socket_truncated", d.socketTruncated},
          {"socket_no_buffer", d.socketNoBuffer},
          {"socket_queue_full", d.socketQueueFull},
          {"socket_send_failed", d.socketSendFailed},
          {"socket_too_big", d.socketTooBig},
          {"socket_closed", d.socketClosed},
          {"device_read_truncated", d.deviceReadTruncated},
          {"device_read_no_buffer", d.deviceReadNoBuffer},
          {"device_write_full", d.deviceWriteFull},
          {"device_write_failed", d.deviceWriteFailed}};
}

json meterJson(const std::optional<UplinkStatus::Meter>& meter) {
  if (!meter) return nullptr;
  return {{"used_bytes", meter->used},
          {"cap_bytes", meter->cap},
          {"closed", meter->closed},
          {"until_unix_s", meter->until}};
}

json shimJson(const ShimStatus& shim) {
  const ShimCounters& c = shim.counters;
  json actuators = json::array();
  for (size_t i = 0; i < kActuators; ++i) {
    const ActuatorCounts& a = c.actuators[i];
    actuators.push_back({{"name", actuatorName(static_cast<Actuator>(i))},
                         {"fired", a.fired},
                         {"useful", a.useful},
                         {"spurious", a.spurious}});
  }
  return {{"on", shim.on},
          {"flows", shim.flows},
          {"cached_packets", shim.cachedPackets},
          {"actuators", std::move(actuators)},
          {"acks_sent", c.acksSent},
          {"acks_dropped", c.acksDropped},
          {"silent", c.silent},
          {"helpless", c.helpless},
          {"foreign_packets", c.foreign},
          {"half_open_flows", c.halfOpen},
          {"proven_flows", c.proven},
          {"table_full", c.tableFull},
          {"cache_full", c.cacheFull},
          {"no_buffer", c.noBuffer}};
}

json gatewayJson(const GatewayStatus& gateway) {
  json uplinks = json::array();
  for (const UplinkStatus& uplink : gateway.uplinks) {
    uplinks.push_back({{"name", uplink.name},
                       {"interface", uplink.interface},
                       {"up", uplink.up},
                       {"use", uplink.use},
                       {"weight", uplink.weight},
                       {"up_limit_bytes_per_s", uplink.upLimit},
                       {"down_limit_bytes_per_s", uplink.downLimit},
                       {"metered", meterJson(uplink.meter)},
                       {"addresses", uplink.addresses},
                       {"gateway", uplink.gateway.empty() ? json(nullptr) : json(uplink.gateway)}});
  }
  return {{"version", gateway.version},
          {"config", gateway.config},
          {"pin", gateway.pin},
          {"device", gateway.device},
          {"mode", gateway.mode},
          {"pid", gateway.pid},
          {"uptime_s", toSeconds(gateway.uptime)},
          {"device_mtu_bytes", gateway.deviceMtu},
          {"listen", gateway.listen},
          {"uplinks", std::move(uplinks)}};
}

json subflowJson(const SubflowStatus& s) {
  return {{"id", s.id},
          {"uplink", s.uplink},
          {"local", s.local},
          {"remote", s.remote},
          {"state", s.state},
          {"srtt_ms", toMilliseconds(s.srtt)},
          {"rttvar_ms", toMilliseconds(s.rttvar)},
          {"min_rtt_ms", toMilliseconds(s.minRtt)},
          {"queue_delay_ms", toMilliseconds(s.queueDelay)},
          {"window_bytes", s.window},
          {"in_flight_bytes", s.inFlight},
          {"pacing_bytes_per_s", finite(s.pacingRate)},
          {"delivery_bytes_per_s", finite(s.deliveryRate)},
          {"sent_packets", s.sentPackets},
          {"sent_bytes", s.sentBytes},
          {"received_packets", s.receivedPackets},
          {"received_bytes", s.receivedBytes},
          {"lost_packets", s.lostPackets},
          {"spurious_losses", s.spuriousLosses},
          {"retransmitted_bytes", s.retransmittedBytes},
          {"use", useName(s.preference.use)},
          {"weight", s.preference.weight},
          {"limit_bytes_per_s", s.preference.ceiling},
          {"resting", s.resting},
          {"suppressed", s.suppressed},
          {"ecn", s.ecn},
          {"ce_marks", s.ceMarks},
          {"mtu_bytes", s.mtu},
          {"copies", s.copies},
          {"parities", s.parities},
          {"protection_bytes", s.protectionBytes},
          {"protected_packets", s.protectedPackets},
          {"recovered_packets", s.recovered},
          {"decoded_packets", s.decoded},
          {"useless_packets", s.useless},
          {"loss_estimate", finite(s.lossRate)},
          {"loss_metric", finite(s.lossMetric)},
          {"burst_packets", finite(s.burst)}};
}

json flowJson(const FlowStatus& f) {
  return {{"name", f.name},
          {"packets", f.packets},
          {"bytes", f.bytes},
          {"queued_bytes", f.queuedBytes},
          {"drops", f.drops},
          {"marks", f.marks},
          {"unacked_packets", f.unacked}};
}

json peerJson(const PeerStatus& peer) {
  json out = peerHead(peer);
  out.update({{"pin", peer.pin},
              {"age_s", toSeconds(peer.age)},
              {"key_epoch", peer.keyEpoch},
              {"cipher", peer.cipher},
              {"inner_mtu_bytes", peer.innerMtu},
              {"inner_sent_packets", peer.innerSentPackets},
              {"inner_sent_bytes", peer.innerSentBytes},
              {"inner_received_packets", peer.innerReceivedPackets},
              {"inner_received_bytes", peer.innerReceivedBytes},
              {"suppressions", peer.suppressions},
              {"retransmitted", peer.retransmitted},
              {"held_packets", peer.heldPackets},
              {"held_bytes", peer.heldBytes},
              {"subflow_count", peer.subflows.size()},
              {"flow_count", peer.flows.size()}});
  out.update(peerRecovery(peer));
  return out;
}

json peersJson(const TunnelStatus& tunnel) {
  return peersWith(tunnel, [](const PeerStatus& peer) { return peerJson(peer); });
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
    std::vector<const FlowStatus*> flows;
    for (const FlowStatus& flow : peer.flows) flows.push_back(&flow);
    size_t listed = std::min(flows.size(), kMaxListedFlows);
    std::partial_sort(flows.begin(), flows.begin() + static_cast<std::ptrdiff_t>(listed), flows.end(),
                      [](const FlowStatus* a, const FlowStatus* b) { return a->bytes > b->bytes; });
    flows.resize(listed);
    json list = json::array();
    for (const FlowStatus* flow : flows) list.push_back(flowJson(*flow));
    json out = peerHead(peer);
    out["flow_count"] = peer.flows.size();
    out["flows"] = std::move(list);
    return out;
  });
}

json recoveryJson(const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  const RecoveryOptions& options = gateway.recovery;
  json out = peersWith(tunnel, [&](const PeerStatus& peer) {
    json p = peerHead(peer);
    p.update(peerRecovery(peer));
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
  out["trace"] = traceJson(gateway.trace);
  return out;
}

json statusJson(const GatewayStatus& gateway, const TunnelStatus& tunnel) {
  json out = peersWith(tunnel, [](const PeerStatus& peer) {
    json p = peerJson(peer);
    p["subflows"] = subflowsJson(peer);
    return p;
  });
  json drops = json::object();
  for (size_t i = 0; i < kDropCount; ++i) drops[dropName(static_cast<Drop>(i))] = tunnel.drops[i];
  out["gateway"] = gatewayJson(gateway);
  out["host_drops"] = hostDropsJson(gateway.drops);
  out["drops"] = std::move(drops);
  out["ack_shim"] = shimJson(tunnel.shim);
  out["buffers_in_use"] = tunnel.buffersInUse;
  out["buffers_limit"] = tunnel.buffersLimit;
  out["handshakes"] = tunnel.handshakes;
  return out;
}

}  // namespace braid
