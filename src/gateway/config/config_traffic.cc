// `tunnel.ack-shim`: when the shim wakes TCP senders, and for which flows.
//
// `streams`: which TCP connections end at the gateways, and how much memory streams may use.
//
// `recovery`: how lost packets are repaired before their loss is detected, and how for which flows.

#include "gateway/config/config_sections.h"
#include "inet/ip.h"

namespace braid {

namespace {

/// There is a limit because each new flow is compared with all exclusions.
constexpr size_t kMaxExclusions = 64;

ShimRule readExclusion(const ConfigValue& value, ConfigDiagnostics& out) {
  ShimRule rule;
  ConfigSection section(value, keysOf("tunnel.ack-shim.exclude"), out);
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

void readAckShim(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, keysOf("tunnel.ack-shim"), out);
  readSettings("tunnel.ack-shim", section, config, out);
  for (const ConfigValue& item : readSequence(section.find("exclude"), kMaxExclusions, out)) {
    if (item) config.tunnel.shim.rules.push_back(readExclusion(item, out));
  }
}

namespace {

/// There is a limit because each packet that begins a connection is compared with all rules.
constexpr size_t kMaxRules = 64;

StreamRule readRule(const ConfigValue& value, const char* effect, const char* remedy,
                    ConfigDiagnostics& out) {
  StreamRule rule;
  ConfigSection section(value, keysOf("streams.match"), out);
  ConfigValue network = section.find("network"), ports = section.find("ports");
  rule.network = readPrefix(network, out);
  if (std::optional<PortRange> range = readPortRange(ports, out)) {
    rule.firstPort = range->first;
    rule.lastPort = range->last;
  }
  if (value.node->kind == ConfigNode::Kind::kMap && !network && !ports)
    out.add(value, effect, remedy);
  return rule;
}

std::vector<StreamRule> readRules(const ConfigValue& value, const char* effect, const char* remedy,
                                  ConfigDiagnostics& out) {
  std::vector<StreamRule> rules;
  for (const ConfigValue& item : readSequence(value, kMaxRules, out)) {
    if (item) rules.push_back(readRule(item, effect, remedy, out));
  }
  return rules;
}

}  // namespace

void readStreams(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  StreamsConfig& streams = config.streams;
  for (uint16_t port : {80, 443, 8080, 8443}) streams.match.push_back({std::nullopt, port, port});
  if (!value) return;
  ConfigSection section(value, keysOf("streams"), out);
  StreamOptions& options = config.tunnel.streams;
  options.on = true;  // a section without `enabled` switches streams on
  readSettings("streams", section, config, out);
  if (ConfigValue match = section.find("match")) {
    streams.match = readRules(match, "matches every connection",
                              "add ports, network or both, such as {ports: 443}", out);
    if (match.node->kind == ConfigNode::Kind::kSequence && match.node->items.empty())
      out.add(match, "is empty", "name ports or networks, or set enabled: off");
  }
  streams.exclude = readRules(section.find("exclude"), "excludes every connection",
                              "add network or ports, or set enabled: off", out);
  ConfigValue stream = section.find("receive-window"), peer = section.find("peer-receive-limit");
  if (peer && options.heldBytes > options.allHeldBytes)
    out.add(peer, "is more than total-receive-limit", "raise total-receive-limit as well");
  if (stream && options.mostCredit > options.heldBytes)
    out.add(stream, "is more than peer-receive-limit", "raise peer-receive-limit as well");
}

namespace {

constexpr std::string_view kDeliveries[] = {deliveryName(Delivery::kOrdered),
                                            deliveryName(Delivery::kTimely)};
constexpr NamedNumber kProtocols[] = {{"tcp", ip::kTcp}, {"udp", ip::kUdp}};
// RFC 2474 section 4.2.2, RFC 2597 section 6, RFC 3246, RFC 5865, RFC 8622.
constexpr NamedNumber kDscps[] = {
    {"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},         {"cs4", 32},  {"cs5", 40},
    {"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12},        {"af13", 14}, {"af21", 18},
    {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28},        {"af33", 30}, {"af41", 34},
    {"af42", 36}, {"af43", 38}, {"ef", 46},   {"voice-admit", 44}, {"le", 1}};

// Two weights are used as shares of their sum; at least one must not be 0.
void checkWeights(const ConfigSection& section, const char* firstKey, const char* secondKey,
                  double first, double second, ConfigDiagnostics& out) {
  if (first != 0 || second != 0) return;
  ConfigValue a = section.find(firstKey);
  out.add(a ? a : section.find(secondKey),
          std::string("both ") + firstKey + " and " + secondKey + " are 0, so all paths look alike",
          "give one of them a value above 0");
}

bool hasPorts(uint8_t protocol) {
  return protocol == ip::kTcp || protocol == ip::kUdp || protocol == ip::kUdpLite ||
         protocol == ip::kSctp || protocol == ip::kDccp;
}

// `policy`: the policy of a class that names none.
RecoveryClass readClass(const ConfigValue& value, const std::string& policy,
                        ConfigDiagnostics& out) {
  RecoveryClass result;
  result.policy = policy;
  ConfigSection section(value, keysOf("recovery.classes"), out);
  ConfigValue protocol = section.find("protocol"), ports = section.find("ports"),
              dscp = section.find("dscp");
  if (auto number = readNamedNumber(protocol, kProtocols, 255, out)) {
    result.protocol = static_cast<uint8_t>(*number);
  }
  if (std::optional<PortRange> range = readPortRange(ports, out)) {
    result.firstPort = range->first;
    result.lastPort = range->last;
  }
  if (auto number = readNamedNumber(dscp, kDscps, 63, out))
    result.dscp = static_cast<uint8_t>(*number);
  ConfigValue delivery = section.find("delivery");
  assign(result.policy,
         readChoice(delivery ? section.find("policy")
                             : section.require("policy", "name the policy of these flows"),
                    kRecoveryPolicies, out));
  if (auto name = readChoice(delivery, kDeliveries, out))
    result.delivery =
        *name == deliveryName(Delivery::kOrdered) ? Delivery::kOrdered : Delivery::kTimely;
  if (delivery && result.protocol == ip::kTcp)
    out.add(delivery, "tcp is always kept in order", "remove it, or use protocol udp");
  if (value.node->kind == ConfigNode::Kind::kMap && !protocol && !ports && !dscp) {
    out.add(value, "matches every flow",
            "add protocol, ports or dscp, or set recovery.policy instead");
  }
  if (ports && result.protocol && !hasPorts(*result.protocol)) {
    out.add(ports, "protocol " + std::to_string(*result.protocol) + " has no ports",
            "remove the ports, or use tcp or udp");
  }
  return result;
}

// Whether every flow that matches `narrow` also matches `wide`.
bool covers(const RecoveryClass& wide, const RecoveryClass& narrow) {
  return (!wide.protocol || wide.protocol == narrow.protocol) &&
         (!wide.dscp || wide.dscp == narrow.dscp) && wide.firstPort <= narrow.firstPort &&
         wide.lastPort >= narrow.lastPort;
}

void readClasses(const ConfigValue& list, TunnelOptions& tunnel, ConfigDiagnostics& out) {
  size_t before = out.size();
  for (const ConfigValue& value : readSequence(list, kMaxRecoveryClasses, out)) {
    if (!value) continue;
    RecoveryClass next = readClass(value, tunnel.recovery, out);
    // A comparison of half-read classes would report consequences of mistakes that were reported
    // already.
    for (size_t i = 0; i < tunnel.recoveryClasses.size() && out.size() == before; ++i) {
      if (!covers(tunnel.recoveryClasses[i], next)) continue;
      out.add(value,
              "is never reached: " + list.key + "[" + std::to_string(i) + "] matches all its flows",
              "put the narrower class first, or remove one of them");
    }
    tunnel.recoveryClasses.push_back(std::move(next));
  }
}

}  // namespace

void readRecovery(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, keysOf("recovery"), out);
  TunnelOptions& tunnel = config.tunnel;
  const RecoveryOptions& options = tunnel.recoveryOptions;
  readSettings("recovery", section, config, out);
  checkWeights(section, "alpha", "beta", options.alpha, options.beta, out);
  checkWeights(section, "alpha1", "beta1", options.alpha1, options.beta1, out);
  checkWeights(section, "alpha2", "beta2", options.alpha2, options.beta2, out);
  readClasses(section.find("classes"), tunnel, out);
  ConfigValue trace = section.find("trace");
  assign(config.trace, readText(trace, out));
  if (!config.trace.empty() && (config.trace.front() != '/' || config.trace.back() == '/')) {
    out.add(trace, "is no complete path of a file", "write one such as /run/braid/edge.trace");
  }
}

}  // namespace braid
