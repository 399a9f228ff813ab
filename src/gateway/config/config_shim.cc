// `tunnel.ack-shim`: when and for which flows the shim wakes TCP senders.

#include "gateway/config/config_sections.h"

namespace braid {
namespace {

/// Ours: each new flow is compared with all of them.
constexpr size_t kMaxExclusions = 64;

ShimRule readExclusion(const ConfigValue& value, ConfigDiagnostics& out) {
  ShimRule rule;
  ConfigSection section(value, {"network", "ports"}, out);
  ConfigValue network = section.find("network"), ports = section.find("ports");
  assign(rule.prefix, readPrefix(network, out));
  if (std::optional<PortRange> range = readPortRange(ports, out)) {
    rule.firstPort = range->first;
    rule.lastPort = range->last;
  }
  if (value.node->kind == ConfigNode::Kind::kMap && !network && !ports) {
    out.add(value, "excludes every flow", "add network or ports, or set enabled: off instead");
  }
  return rule;
}

}  // namespace

void readAckShim(const ConfigValue& value, TunnelOptions& tunnel, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value,
                        {"enabled", "alpha", "phi", "gamma", "rto-min", "inactivity", "max-flows", "replay",
                         "sack-gap", "exclude"},
                        out);
  AckShimOptions& shim = tunnel.shim;
  readSwitch(tunnel.ackShim, section.find("enabled"), out);
  assign(shim.alpha, readNumber(section.find("alpha"), 1, 1000, out));
  assign(shim.phi, readNumber(section.find("phi"), 1, 16, out));
  assign(shim.gamma, readByteCount(section.find("gamma"), 1000, 1 << 30, out));
  assign(shim.rtoMin, readDuration(section.find("rto-min"), 10ms, 60s, out));
  assign(shim.inactivity, readDuration(section.find("inactivity"), 10ms, 60s, out));
  assign(shim.maxFlows, readNumber(section.find("max-flows"), 16, 1 << 20, out));
  readSwitch(shim.replay, section.find("replay"), out);
  readSwitch(shim.sackGap, section.find("sack-gap"), out);
  for (const ConfigValue& item : readSequence(section.find("exclude"), kMaxExclusions, out)) {
    if (item) shim.rules.push_back(readExclusion(item, out));
  }
}

}  // namespace braid
