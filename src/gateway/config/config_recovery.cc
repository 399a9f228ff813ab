// `recovery`: how lost packets are repaired before anybody knows that they are lost, and for which flows how.

#include <tuple>

#include "coding/block.h"
#include "gateway/config/config_sections.h"
#include "inet/protocol.h"

namespace braid {
namespace {

// The names that makeRecoveryPolicy() knows.
constexpr std::string_view kPolicies[] = {"none",      "fuso",     "cofuso",     "redundant",
                                          "proactive", "reactive", "corrective", "adaptive"};
constexpr std::string_view kDeliveries[] = {deliveryName(Delivery::kOrdered),
                                            deliveryName(Delivery::kTimely)};
constexpr uint64_t kMostParities = std::tuple_size_v<decltype(RecoveryOptions::decodeTime)>;
static_assert(kMostParities <= kMaxBlockParities);

constexpr NamedNumber kProtocols[] = {{"tcp", ip::kTcp}, {"udp", ip::kUdp}};
// RFC 2474 section 4.2.2, RFC 2597 section 6, RFC 3246, RFC 5865, RFC 8622.
constexpr NamedNumber kDscps[] = {{"cs0", 0},   {"cs1", 8},          {"cs2", 16},  {"cs3", 24},  {"cs4", 32},
                                  {"cs5", 40},  {"cs6", 48},         {"cs7", 56},  {"af11", 10}, {"af12", 12},
                                  {"af13", 14}, {"af21", 18},        {"af22", 20}, {"af23", 22}, {"af31", 26},
                                  {"af32", 28}, {"af33", 30},        {"af41", 34}, {"af42", 36}, {"af43", 38},
                                  {"ef", 46},   {"voice-admit", 44}, {"le", 1}};

// Two weights of one sum, of which one at least must count.
void readWeights(const ConfigSection& section, const char* firstKey, const char* secondKey, double& first,
                 double& second, ConfigDiagnostics& out) {
  ConfigValue a = section.find(firstKey), b = section.find(secondKey);
  assign(first, readFraction(a, out));
  assign(second, readFraction(b, out));
  if (first == 0 && second == 0) {
    out.add(a ? a : b,
            std::string("both ") + firstKey + " and " + secondKey + " are 0, so all paths look alike",
            "give one of them a value above 0");
  }
}

void readOptions(const ConfigSection& section, RecoveryOptions& options, ConfigDiagnostics& out) {
  assign(options.kMax, readNumber(section.find("k-max"), 1, kMaxBlockSymbols, out));
  assign(options.mMax, readNumber(section.find("m-max"), 1, kMostParities, out));
  readWeights(section, "alpha", "beta", options.alpha, options.beta, out);
  readWeights(section, "alpha1", "beta1", options.alpha1, options.beta1, out);
  readWeights(section, "alpha2", "beta2", options.alpha2, options.beta2, out);
}

bool hasPorts(uint8_t protocol) {
  return protocol == ip::kTcp || protocol == ip::kUdp || protocol == ip::kUdpLite || protocol == ip::kSctp ||
         protocol == ip::kDccp;
}

// `policy`: of a class that names none.
RecoveryClass readClass(const ConfigValue& value, const std::string& policy, ConfigDiagnostics& out) {
  RecoveryClass result;
  result.policy = policy;
  ConfigSection section(value, {"protocol", "ports", "dscp", "policy", "delivery"}, out);
  ConfigValue protocol = section.find("protocol"), ports = section.find("ports"), dscp = section.find("dscp");
  if (auto number = readNamedNumber(protocol, kProtocols, 255, out)) {
    result.protocol = static_cast<uint8_t>(*number);
  }
  if (std::optional<PortRange> range = readPortRange(ports, out)) {
    result.firstPort = range->first;
    result.lastPort = range->last;
  }
  if (auto number = readNamedNumber(dscp, kDscps, 63, out)) result.dscp = static_cast<uint8_t>(*number);
  ConfigValue delivery = section.find("delivery");
  assign(result.policy, readChoice(delivery ? section.find("policy")
                                            : section.require("policy", "name the policy of these flows"),
                                   kPolicies, out));
  if (auto name = readChoice(delivery, kDeliveries, out))
    result.delivery = *name == deliveryName(Delivery::kOrdered) ? Delivery::kOrdered : Delivery::kTimely;
  if (delivery && result.protocol == ip::kTcp)
    out.add(delivery, "tcp is always kept in order", "remove it, or use protocol udp");
  if (value.node->kind == ConfigNode::Kind::kMap && !protocol && !ports && !dscp) {
    out.add(value, "matches every flow", "add protocol, ports or dscp, or set recovery.policy instead");
  }
  if (ports && result.protocol && !hasPorts(*result.protocol)) {
    out.add(ports, "protocol " + std::to_string(*result.protocol) + " has no ports",
            "remove the ports, or use tcp or udp");
  }
  return result;
}

// Every flow that matches `narrow` matches `wide`.
bool covers(const RecoveryClass& wide, const RecoveryClass& narrow) {
  return (!wide.protocol || wide.protocol == narrow.protocol) && (!wide.dscp || wide.dscp == narrow.dscp) &&
         wide.firstPort <= narrow.firstPort && wide.lastPort >= narrow.lastPort;
}

void readClasses(const ConfigValue& list, TunnelOptions& tunnel, ConfigDiagnostics& out) {
  size_t before = out.size();
  for (const ConfigValue& value : readSequence(list, kMaxRecoveryClasses, out)) {
    if (!value) continue;
    RecoveryClass next = readClass(value, tunnel.recovery, out);
    // Half-read classes would be reported for consequences of what is reported already.
    for (size_t i = 0; i < tunnel.recoveryClasses.size() && out.size() == before; ++i) {
      if (!covers(tunnel.recoveryClasses[i], next)) continue;
      out.add(value, "is never reached: " + list.key + "[" + std::to_string(i) + "] matches all its flows",
              "put the narrower class first, or remove one of them");
    }
    tunnel.recoveryClasses.push_back(std::move(next));
  }
}

}  // namespace

void readRecovery(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value,
                        {"policy", "k-max", "m-max", "alpha", "beta", "alpha1", "beta1", "alpha2", "beta2",
                         "decode-buffer", "classes", "trace"},
                        out);
  TunnelOptions& tunnel = config.tunnel;
  assign(tunnel.recovery, readChoice(section.find("policy"), kPolicies, out));
  readOptions(section, tunnel.recoveryOptions, out);
  assign(tunnel.decodeBuffer, readNumber(section.find("decode-buffer"), 0, 65536, out));
  readClasses(section.find("classes"), tunnel, out);
  ConfigValue trace = section.find("trace");
  assign(config.trace, readText(trace, out));
  if (!config.trace.empty() && (config.trace.front() != '/' || config.trace.back() == '/')) {
    out.add(trace, "is no complete path of a file", "write one such as /run/braid/edge.trace");
  }
}

}  // namespace braid
