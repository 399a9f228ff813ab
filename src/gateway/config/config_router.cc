// `forwarding`, `nat` and `forwards`: what the host does for packets of others.

#include <algorithm>

#include "gateway/config/config_sections.h"
#include "inet/protocol.h"

namespace braid {
namespace {

/// Ours: a connection that begins is compared with all of them.
constexpr size_t kMaxForwards = 256;
constexpr size_t kMaxForwardSources = 64;
constexpr std::string_view kNatChoices[] = {"on", "ipv4", "off"};
constexpr std::string_view kForwardProtocols[] = {"tcp", "udp"};
constexpr std::string_view kForwardSources[] = {"client", "own"};

// An address, with or without a port behind it.
void readTarget(const ConfigValue& value, PortForward& forward, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return;
  if (std::optional<Address> address = Address::parse(*text)) {
    forward.to = *address;
  } else if (std::optional<Endpoint> endpoint = Endpoint::parse(*text); endpoint && endpoint->port != 0) {
    forward.to = endpoint->address;
    forward.toPort = endpoint->port;
  } else {
    out.add(value, "'" + *text + "' is no address, nor one with a port",
            "write ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, such as 192.168.1.10:80");
  }
}

PortForward readForward(const ConfigValue& value, ConfigDiagnostics& out) {
  PortForward forward;
  ConfigSection section(value, {"protocol", "port", "to", "from", "source"}, out);
  forward.protocol = ip::kTcp;
  if (std::optional<std::string> protocol = readChoice(section.find("protocol"), kForwardProtocols, out))
    forward.protocol = *protocol == "udp" ? ip::kUdp : ip::kTcp;
  ConfigValue port = section.require("port", "name the port of this gateway, such as 8080 or 5000-5010"),
              to = section.require("to",
                                   "name the host behind a peer, such as 192.168.1.10 or 192.168.1.10:80");
  if (std::optional<PortRange> range = readPortRange(port, out)) {
    forward.firstPort = range->first;
    forward.lastPort = range->last;
  }
  readTarget(to, forward, out);
  if (forward.toPort && forward.firstPort != forward.lastPort)
    out.add(to, "has a port, and several lead to it", "leave the port out: each stays as it is");
  for (const ConfigValue& item : readSequence(section.find("from"), kMaxForwardSources, out)) {
    std::optional<Prefix> from = readPrefix(item, out);
    if (!from) continue;
    if (forward.to.bits() && from->address.family != forward.to.family)
      out.add(item, "is of another address family than 'to'", "name networks of the same family");
    forward.from.push_back(*from);
  }
  if (std::optional<std::string> source = readChoice(section.find("source"), kForwardSources, out))
    forward.ownSource = *source == "own";
  return forward;
}

bool sharePorts(const PortForward& a, const PortForward& b) {
  return a.protocol == b.protocol && a.to.family == b.to.family && a.firstPort <= b.lastPort &&
         b.firstPort <= a.lastPort;
}

bool isBehindPeer(const Config& config, const Address& address) {
  return std::any_of(config.peers.begin(), config.peers.end(), [&](const PeerConfig& peer) {
    const std::vector<Prefix>& prefixes = peer.options.prefixes;
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const Prefix& p) { return p.contains(address); });
  });
}

// The gateway's own port must still be reached.
bool takesListen(const Config& config, const PortForward& forward) {
  return forward.protocol == ip::kUdp &&
         std::any_of(config.listen.begin(), config.listen.end(), [&](const Endpoint& own) {
           return own.address.family == forward.to.family && own.port >= forward.firstPort &&
                  own.port <= forward.lastPort;
         });
}

}  // namespace

void readRouter(const ConfigSection& root, Config& config, ConfigDiagnostics& out) {
  RouterConfig& router = config.router;
  readSwitch(router.forwarding, root.find("forwarding"), out);
  if (std::optional<std::string> nat = readChoice(root.find("nat"), kNatChoices, out)) {
    router.natV4 = *nat != "off";
    router.natV6 = *nat == "on";
  }
  for (const ConfigValue& item : readSequence(root.find("forwards"), kMaxForwards, out)) {
    if (item) router.forwards.push_back(readForward(item, out));
  }
}

void checkRouter(const ConfigSection& root, const Config& config, ConfigDiagnostics& out) {
  const RouterConfig& router = config.router;
  if (config.tunnel.mode == TunnelOptions::Mode::kTap) {
    for (const char* key : {"nat", "forwards"}) {
      bool used = key[0] == 'n' ? router.natV4 : !router.forwards.empty();
      if (used)
        out.add(root.find(key), "a TAP device bridges frames, and no addresses are translated there",
                "set device.mode to tun, or remove it");
    }
    return;
  }
  ConfigValue list = root.find("forwards");
  for (size_t i = 0; i < router.forwards.size(); ++i) {
    const PortForward& forward = router.forwards[i];
    ConfigValue port = childOf(itemOf(list, i), "port");
    if (!isBehindPeer(config, forward.to))
      out.add(childOf(itemOf(list, i), "to"), forward.to.toString() + " is in no peer's prefixes",
              "name a host behind a peer, or add its network to that peer's prefixes");
    if (takesListen(config, forward))
      out.add(port, "takes the port that this gateway listens on",
              "choose another port, or another 'listen'");
    for (size_t j = 0; j < i; ++j) {
      const PortForward& earlier = router.forwards[j];
      if (!sharePorts(earlier, forward) || !earlier.from.empty()) continue;
      out.add(port, "is taken by forwards[" + std::to_string(j) + "] already",
              "choose another port, or put the one with 'from' first");
      break;
    }
  }
}

}  // namespace braid
