// Checks of the sections about traffic: `tunnel`, `streams`, `forwards`, `recovery`.

#include "gateway/config/config_checks.h"
#include "gateway/config/config_values.h"
#include "gateway/config/units.h"
#include "inet/ip.h"
#include "scheduler/rate/amp.h"

namespace braid {

namespace {

// Derives beta from the fabric's bandwidth-delay product and marking threshold, when they are
// given.
void readBeta(const ConfigValue& section, AmpOptions& amp, ConfigDiagnostics& out) {
  ConfigValue beta = childOf(section, "beta"), bdp = childOf(section, "bdp"),
              k = childOf(section, "mark-threshold");
  if (beta && (bdp || k)) {
    out.add(bdp ? bdp : k, "beta is given as well", "remove beta, or bdp and mark-threshold");
  } else if (bool(bdp) != bool(k)) {
    out.add(bdp ? bdp : k, std::string("says nothing without ") + (bdp ? "mark-threshold" : "bdp"),
            "give both, in packets, or beta");
  } else if (bdp) {
    amp.beta = ampBeta(static_cast<double>(*readNumber(bdp, 1, kMostAmpPackets, out)),
                       static_cast<double>(*readNumber(k, 1, kMostAmpPackets, out)));
  }
}

void checkAmp(const ConfigValue& section, TunnelOptions& tunnel, ConfigDiagnostics& out) {
  if (!section) return;
  readBeta(section, tunnel.amp, out);
  if (tunnel.amp.minimumWindow > tunnel.initialWindow) {
    ConfigValue least = childOf(section, "cwnd-min");
    out.add(least ? least : section,
            std::to_string(tunnel.amp.minimumWindow) + " is above initial-window, " +
                std::to_string(tunnel.initialWindow),
            "raise initial-window as well");
  }
  if (tunnel.controller != "amp" && tunnel.controller != "auto") {
    out.add(section, "has no effect with controller " + tunnel.controller,
            "set controller: amp, or remove it");
  }
}

// Reports an item of a list of rules that names neither networks nor ports.
void checkRule(const ConfigValue& item, const char* effect, const char* remedy,
               ConfigDiagnostics& out) {
  if (!childOf(item, "network") && !childOf(item, "ports")) out.add(item, effect, remedy);
}

// Two weights are used as shares of their sum; at least one must not be 0.
void checkWeights(const ConfigValue& section, const char* firstKey, const char* secondKey,
                  double first, double second, ConfigDiagnostics& out) {
  if (first != 0 || second != 0) return;
  ConfigValue a = childOf(section, firstKey);
  out.add(a ? a : childOf(section, secondKey),
          std::string("both ") + firstKey + " and " + secondKey + " are 0, so all paths look alike",
          "give one of them a value above 0");
}

bool hasPorts(uint8_t protocol) {
  return protocol == ip::kTcp || protocol == ip::kUdp || protocol == ip::kUdpLite ||
         protocol == ip::kSctp || protocol == ip::kDccp;
}

// Whether every flow that matches `narrow` also matches `wide`.
bool covers(const RecoveryClass& wide, const RecoveryClass& narrow) {
  return (!wide.protocol || wide.protocol == narrow.protocol) &&
         (!wide.dscp || wide.dscp == narrow.dscp) && wide.firstPort <= narrow.firstPort &&
         wide.lastPort >= narrow.lastPort;
}

}  // namespace

void checkTunnel(const ConfigValue& section, Config& config, ConfigDiagnostics& out) {
  const TunnelOptions& tunnel = config.tunnel;
  ConfigValue mtu = childOf(section, "mtu");
  if (mtu && tunnel.outerMtu > tunnel.maxOuterMtu) {
    out.add(mtu,
            std::to_string(tunnel.outerMtu) + " is above max-mtu, " +
                std::to_string(tunnel.maxOuterMtu),
            "raise max-mtu as well");
  }
  if (tunnel.codelTarget >= tunnel.codelInterval) {
    out.add(childOf(section, "codel-target"),
            durationText(tunnel.codelTarget) + " is not below codel-interval, " +
                durationText(tunnel.codelInterval),
            "use 5 to 10 % of the interval (RFC 8289 section 4.3), or auto");
  }
  checkAmp(childOf(section, "amp"), config.tunnel, out);
}

void checkShimExclusion(const ConfigValue& item, ShimRule&, ConfigDiagnostics& out) {
  checkRule(item, "excludes every flow", "add network or ports, or set enabled: off instead", out);
}

void checkStreamMatch(const ConfigValue& item, StreamRule&, ConfigDiagnostics& out) {
  checkRule(item, "matches every connection", "add ports, network or both, such as {ports: 443}",
            out);
}

void checkStreamExclusion(const ConfigValue& item, StreamRule&, ConfigDiagnostics& out) {
  checkRule(item, "excludes every connection", "add network or ports, or set enabled: off", out);
}

void checkStreamAcceptance(const ConfigValue& item, StreamRule&, ConfigDiagnostics& out) {
  checkRule(item, "accepts every connection", "add network or ports, or name 0.0.0.0/0 and ::/0",
            out);
}

void checkStreamMatches(const ConfigValue& list, Config& config, ConfigDiagnostics& out) {
  if (config.streams.match.empty())
    out.add(list, "is empty", "name ports or networks, or set enabled: off");
}

void checkStreams(const ConfigValue& section, Config& config, ConfigDiagnostics& out) {
  StreamOptions& options = config.tunnel.streams;
  if (!childOf(section, "enabled")) options.on = true;
  ConfigValue stream = childOf(section, "receive-window"),
              peer = childOf(section, "peer-receive-limit");
  if (peer && options.heldBytes > options.allHeldBytes)
    out.add(peer, "is more than total-receive-limit", "raise total-receive-limit as well");
  if (stream && options.mostCredit > options.heldBytes)
    out.add(stream, "is more than peer-receive-limit", "raise peer-receive-limit as well");
}

void checkForward(const ConfigValue& item, PortForward& forward, ConfigDiagnostics& out) {
  if (!childOf(item, "protocol")) forward.protocol = ip::kTcp;
  if (forward.toPort && forward.firstPort != forward.lastPort)
    out.add(childOf(item, "to"), "has a port, and several lead to it",
            "leave the port out: each stays as it is");
  for (size_t i = 0; i < forward.from.size(); ++i) {
    if (forward.from[i].address.family != forward.to.family)
      out.add(itemOf(childOf(item, "from"), i), "is of another address family than 'to'",
              "name networks of the same family");
  }
}

void checkRecovery(const ConfigValue& section, Config& config, ConfigDiagnostics& out) {
  const RecoveryOptions& options = config.tunnel.recoveryOptions;
  checkWeights(section, "alpha", "beta", options.alpha, options.beta, out);
  checkWeights(section, "alpha1", "beta1", options.alpha1, options.beta1, out);
  checkWeights(section, "alpha2", "beta2", options.alpha2, options.beta2, out);
  for (RecoveryClass& flows : config.tunnel.recoveryClasses) {
    if (flows.policy.empty()) flows.policy = config.tunnel.recovery;
  }
}

void checkRecoveryClass(const ConfigValue& item, RecoveryClass& flows, ConfigDiagnostics& out) {
  ConfigValue delivery = childOf(item, "delivery"), ports = childOf(item, "ports");
  if (!delivery) requiredChild(item, "policy", "name the policy of these flows", out);
  if (delivery && flows.protocol == ip::kTcp)
    out.add(delivery, "tcp is always kept in order", "remove it, or use protocol udp");
  if (!flows.protocol && !flows.dscp && !ports) {
    out.add(item, "matches every flow",
            "add protocol, ports or dscp, or set recovery.policy instead");
  }
  if (ports && flows.protocol && !hasPorts(*flows.protocol)) {
    out.add(ports, "protocol " + std::to_string(*flows.protocol) + " has no ports",
            "remove the ports, or use tcp or udp");
  }
}

void checkRecoveryClasses(const ConfigValue& list, Config& config, ConfigDiagnostics& out) {
  const std::vector<RecoveryClass>& classes = config.tunnel.recoveryClasses;
  for (size_t i = 0; i < classes.size(); ++i) {
    for (size_t earlier = 0; earlier < i; ++earlier) {
      if (!covers(classes[earlier], classes[i])) continue;
      out.add(itemOf(list, i),
              "is never reached: " + list.key + "[" + std::to_string(earlier) +
                  "] matches all its flows",
              "put the narrower class first, or remove one of them");
      break;
    }
  }
}

}  // namespace braid
