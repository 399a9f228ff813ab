// `tunnel`: what its settings mean together; settings.cc has their ranges.

#include "gateway/config/config_sections.h"
#include "gateway/config/units.h"
#include "scheduler/rate/amp.h"

namespace braid {
namespace {

// Derives beta from the fabric's bandwidth-delay product and marking threshold, when they are
// given.
void readBeta(const ConfigSection& section, AmpOptions& amp, ConfigDiagnostics& out) {
  constexpr uint64_t kMostPackets = 1 << 20;
  ConfigValue beta = section.find("beta"), bdp = section.find("bdp"),
              k = section.find("mark-threshold");
  std::optional<uint64_t> product = readNumber(bdp, 1, kMostPackets, out);
  std::optional<uint64_t> threshold = readNumber(k, 1, kMostPackets, out);
  if (beta && (bdp || k)) {
    out.add(bdp ? bdp : k, "beta is given as well", "remove beta, or bdp and mark-threshold");
  } else if (bool(bdp) != bool(k)) {
    out.add(bdp ? bdp : k, std::string("says nothing without ") + (bdp ? "mark-threshold" : "bdp"),
            "give both, in packets, or beta");
  } else if (product && threshold) {
    amp.beta = ampBeta(static_cast<double>(*product), static_cast<double>(*threshold));
  }
}

void readAmp(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, keysOf("tunnel.amp"), out);
  TunnelOptions& tunnel = config.tunnel;
  readSettings("tunnel.amp", section, config, out);
  readBeta(section, tunnel.amp, out);
  if (tunnel.amp.minimumWindow > tunnel.initialWindow) {
    out.add(section.find("cwnd-min"),
            std::to_string(tunnel.amp.minimumWindow) + " is above initial-window, " +
                std::to_string(tunnel.initialWindow),
            "raise initial-window as well");
  }
  if (tunnel.controller != "amp" && tunnel.controller != "auto") {
    out.add(value, "has no effect with controller " + tunnel.controller,
            "set controller: amp, or remove it");
  }
}

}  // namespace

void readTunnel(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, keysOf("tunnel"), out);
  const TunnelOptions& tunnel = config.tunnel;
  readSettings("tunnel", section, config, out);
  ConfigValue mtu = section.find("mtu");
  if (mtu && tunnel.outerMtu > tunnel.maxOuterMtu) {
    out.add(mtu,
            std::to_string(tunnel.outerMtu) + " is above max-mtu, " +
                std::to_string(tunnel.maxOuterMtu),
            "raise max-mtu as well");
  }
  if (tunnel.codelTarget >= tunnel.codelInterval) {
    out.add(section.find("codel-target"),
            durationText(tunnel.codelTarget) + " is not below codel-interval, " +
                durationText(tunnel.codelInterval),
            "use 5 to 10 % of the interval (RFC 8289 section 4.3), or auto");
  }
  readAmp(section.find("amp"), config, out);
  readAckShim(section.find("ack-shim"), config, out);
}

}  // namespace braid
