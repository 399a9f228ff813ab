// `tunnel`: the tunnel's settings and their ranges.

#include <algorithm>

#include "gateway/config/config_sections.h"
#include "gateway/config/units.h"
#include "scheduler/path/path_scheduler.h"
#include "scheduler/rate/amp.h"
#include "scheduler/rate/controller.h"

namespace braid {
namespace {

constexpr std::string_view kCiphers[] = {"auto", "aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"};

// Handshakes and path challenges fill MtuDiscovery::kMinDatagram bytes of UDP payload on every
// path. The headers of UDP and IPv6 are added, because any endpoint may have an IPv6 address.
constexpr uint64_t kSmallestOuterMtu = 1248;
constexpr uint64_t kLargestOuterMtu = 9216;  // jumbo frames

std::optional<AeadKind> cipherKind(const std::string& name) {
  if (name == "aes-128-gcm") return AeadKind::kAes128Gcm;
  if (name == "aes-256-gcm") return AeadKind::kAes256Gcm;
  if (name == "chacha20-poly1305") return AeadKind::kChaCha20Poly1305;
  return std::nullopt;
}

// Reads a name that `make` knows; `names` is for the message.
template <typename Make>
std::optional<std::string> readPolicy(const ConfigValue& value,
                                      std::span<const std::string_view> names, Make make,
                                      ConfigDiagnostics& out) {
  if (value && value.node->kind == ConfigNode::Kind::kScalar && make(value.node->text))
    return value.node->text;
  return readChoice(value, names, out);
}

void readSizes(const ConfigSection& section, TunnelOptions& tunnel, ConfigDiagnostics& out) {
  ConfigValue mtu = section.find("mtu");
  assign(tunnel.outerMtu, readAutoOrNumber(mtu, kSmallestOuterMtu, kLargestOuterMtu, out));
  assign(tunnel.maxOuterMtu,
         readNumber(section.find("max-mtu"), kSmallestOuterMtu, kLargestOuterMtu, out));
  if (mtu && tunnel.outerMtu > tunnel.maxOuterMtu) {
    out.add(mtu,
            std::to_string(tunnel.outerMtu) + " is above max-mtu, " +
                std::to_string(tunnel.maxOuterMtu),
            "raise max-mtu as well");
  }
  assign(tunnel.queueBytes, readByteCount(section.find("queue-limit"), 64 << 10, 1 << 30, out));
  assign(tunnel.holdBytes, readByteCount(section.find("hold-limit"), 64 << 10, 1 << 30, out));
  assign(tunnel.maxFlows, readNumber(section.find("max-flows"), 16, 1 << 20, out));
  assign(tunnel.maxSubflows, readNumber(section.find("max-subflows"), 1, 256, out));
}

// Reads beta, or derives it from the fabric's bandwidth-delay product and marking threshold.
void readBeta(const ConfigSection& section, AmpOptions& amp, ConfigDiagnostics& out) {
  ConfigValue beta = section.find("beta"), bdp = section.find("bdp"),
              k = section.find("mark-threshold");
  assign(amp.beta, readNumber(beta, 2, 1000, out));
  std::optional<uint64_t> product = readNumber(bdp, 1, 1 << 20, out);
  std::optional<uint64_t> threshold = readNumber(k, 1, 1 << 20, out);
  if (beta && (bdp || k)) {
    out.add(bdp ? bdp : k, "beta is given as well", "remove beta, or bdp and mark-threshold");
  } else if (bool(bdp) != bool(k)) {
    out.add(bdp ? bdp : k, std::string("says nothing without ") + (bdp ? "mark-threshold" : "bdp"),
            "give both, in packets, or beta");
  } else if (product && threshold) {
    amp.beta = ampBeta(static_cast<double>(*product), static_cast<double>(*threshold));
  }
}

void readAmp(const ConfigValue& value, TunnelOptions& tunnel, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, {"gamma", "tau", "beta", "cwnd-min", "bdp", "mark-threshold"}, out);
  assign(tunnel.amp.gamma, readNumber(section.find("gamma"), 1, 1000, out));
  assign(tunnel.amp.tau, readNumber(section.find("tau"), 1, 1000, out));
  ConfigValue least = section.find("cwnd-min");
  assign(tunnel.amp.minimumWindow, readNumber(least, 1, 100, out));
  readBeta(section, tunnel.amp, out);
  if (tunnel.amp.minimumWindow > tunnel.initialWindow) {
    out.add(least,
            std::to_string(tunnel.amp.minimumWindow) + " is above initial-window, " +
                std::to_string(tunnel.initialWindow),
            "raise initial-window as well");
  }
  if (tunnel.controller != "amp" && tunnel.controller != "auto") {
    out.add(value, "has no effect with controller " + tunnel.controller,
            "set controller: amp, or remove it");
  }
}

void readTimes(const ConfigSection& section, TunnelOptions& tunnel, ConfigDiagnostics& out) {
  ConfigValue target = section.find("codel-target");
  assign(tunnel.codelTarget, readAutoOrDuration(target, 100us, 1s, out));
  assign(tunnel.codelInterval, readDuration(section.find("codel-interval"), 1ms, 10s, out));
  if (tunnel.codelTarget >= tunnel.codelInterval) {
    out.add(target,
            durationText(tunnel.codelTarget) + " is not below codel-interval, " +
                durationText(tunnel.codelInterval),
            "use 5 to 10 % of the interval (RFC 8289 section 4.3), or auto");
  }
  assign(tunnel.flowIdle, readDuration(section.find("flow-idle"), 1s, 24h, out));
  assign(tunnel.holdTime, readDuration(section.find("hold-time"), 0s, 10s, out));
  assign(tunnel.repairTime, readDuration(section.find("repair-time"), 100ms, 60s, out));
  assign(tunnel.returnAfter, readDuration(section.find("return-after"), 1s, 24h, out));
}

}  // namespace

void readTunnel(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, {"controller",    "amp",          "initial-window", "scheduler",
                                "cipher",        "mtu",          "max-mtu",        "rekey-after",
                                "rekey-packets", "codel-target", "codel-interval", "queue-limit",
                                "hold-time",     "hold-limit",   "repair-time",    "max-flows",
                                "flow-idle",     "max-subflows", "ecn-proxy",      "ack-shim",
                                "return-after"},
                        out);
  TunnelOptions& tunnel = config.tunnel;
  assign(tunnel.controller, readChoice(section.find("controller"), kControllerNames, out));
  assign(tunnel.scheduler, readPolicy(
                               section.find("scheduler"), kPathSchedulerNames,
                               [](auto& name) { return makePathScheduler(name) != nullptr; }, out));
  if (auto cipher = readChoice(section.find("cipher"), kCiphers, out))
    config.cipher = cipherKind(*cipher);
  assign(tunnel.rekeyAfter, readOffOrDuration(section.find("rekey-after"), 10s, 24h * 7, out));
  assign(tunnel.rekeyPackets, readNumber(section.find("rekey-packets"), 1 << 10, 1 << 23, out));
  if (auto proxy = readChoice(section.find("ecn-proxy"), kSwitch, out))
    tunnel.ecnProxy = *proxy == "on";
  assign(tunnel.initialWindow, readNumber(section.find("initial-window"), 2, 1000, out));
  readAmp(section.find("amp"), tunnel, out);
  readSizes(section, tunnel, out);
  readTimes(section, tunnel, out);
  readAckShim(section.find("ack-shim"), tunnel, out);
}

}  // namespace braid
