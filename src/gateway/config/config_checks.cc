// Checks the sections of a file against each other. Runs only on files in which each section alone
// is valid.

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "gateway/config/config_checks.h"
#include "inet/ip.h"

namespace braid {

namespace {

constexpr size_t kSmallestIpv6Mtu = 1280;  // RFC 8200 section 5

// One of the device's routes; those of fragments come after those of the main file.
ConfigValue routeAt(const ConfigValue& mainRoutes, const ConfigPlaces& places, size_t index) {
  size_t own = mainRoutes ? mainRoutes.node->items.size() : 0;
  return index < own ? itemOf(mainRoutes, index) : places.addedRoutes[index - own];
}

bool hasEndpoints(const PeerConfig& peer) {
  return !peer.options.endpoints.empty() || !peer.hosts.empty();
}

// One of the two sides must be able to start a session.
void checkReach(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  if (config.uplinks.empty() && config.listen.empty()) {
    out.add(places.root, "has neither uplinks nor listen",
            "add 'uplinks' to reach peers, or 'listen' to be reached");
    return;
  }
  for (size_t i = 0; i < config.peers.size(); ++i) {
    if (hasEndpoints(config.peers[i]) && config.uplinks.empty()) {
      out.add(places.peers[i], "has endpoints, and there are no uplinks to reach them from",
              "add 'uplinks', or remove the endpoints and let the peer come");
    } else if (!hasEndpoints(config.peers[i]) && config.listen.empty()) {
      out.add(places.peers[i], "has no endpoints, and there is no 'listen' to be reached at",
              "add the peer's endpoints, or 'listen' here");
    }
  }
  bool anyEndpoint = std::any_of(config.peers.begin(), config.peers.end(), hasEndpoints);
  if (!config.uplinks.empty() && !anyEndpoint) {
    out.add(childOf(places.root, "uplinks"), "no peer has endpoints to reach over uplinks",
            "add the endpoints of a peer, or remove the uplinks");
  }
}

// Each socket of an uplink carries one subflow per endpoint of a peer.
void checkSubflows(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  size_t sockets =
      std::accumulate(config.uplinks.begin(), config.uplinks.end(), size_t{0},
                      [](size_t sum, const UplinkConfig& u) { return sum + u.subflows; });
  for (size_t i = 0; i < config.peers.size(); ++i) {
    size_t subflows =
        sockets * (config.peers[i].options.endpoints.size() + config.peers[i].hosts.size());
    if (subflows > config.tunnel.maxSubflows) {
      out.add(places.peers[i],
              "would get " + std::to_string(subflows) +
                  " subflows (subflows of all uplinks times endpoints), more than " +
                  std::to_string(config.tunnel.maxSubflows),
              "lower 'subflows', remove endpoints, or raise tunnel.max-subflows at both gateways");
    }
  }
}

// A peer can replace another peer of its group for prefixes that both have. A group with a single
// peer is allowed, because others may be added.
void checkGroups(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  std::map<std::string, size_t> members;
  std::map<Prefix, size_t> holders;  // several: peers of one group
  for (const PeerConfig& peer : config.peers) {
    ++members[peer.options.group];
    for (const Prefix& prefix : peer.options.prefixes) ++holders[prefix];
  }
  for (size_t i = 0; i < config.peers.size(); ++i) {
    const PeerOptions& peer = config.peers[i].options;
    if (peer.group.empty() || members[peer.group] == 1) continue;
    if (std::ranges::any_of(peer.prefixes, [&](const Prefix& p) { return holders[p] > 1; }))
      continue;
    out.add(childOf(places.peers[i], "group"),
            peer.name + " shares no prefix with another peer of " + peer.group +
                ", so none can stand for it",
            "give both the same prefixes, or remove the group");
  }
}

void checkTun(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  ConfigValue device = childOf(places.root, "device");
  if (ConfigValue bridge = childOf(device, "bridge")) {
    out.add(bridge, "a TUN device cannot join a bridge",
            "set device.mode to tap, or remove the bridge");
  }
  for (const char* key : {"ethertypes", "ageing-time", "flood-limit"}) {
    if (ConfigValue value = childOf(device, key))
      out.add(value, "is for frames, and a TUN device has none",
              "set device.mode to tap, or remove it");
  }
  for (size_t i = 0; i < config.peers.size(); ++i) {
    if (config.peers[i].options.prefixes.empty()) {
      out.add(places.peers[i], "has no prefixes, so no packet would go to it or be taken from it",
              "add 'prefixes' with the networks behind the peer");
    }
  }
  ConfigValue routes = childOf(device, "routes");
  for (size_t i = 0; i < config.device.routes.size(); ++i) {
    const Prefix& route = config.device.routes[i];
    bool served =
        std::any_of(config.peers.begin(), config.peers.end(), [&](const PeerConfig& peer) {
          const std::vector<Prefix>& prefixes = peer.options.prefixes;
          return std::any_of(prefixes.begin(), prefixes.end(),
                             [&](const Prefix& p) { return p.overlaps(route); });
        });
    if (!served) {
      out.add(routeAt(routes, places, i),
              route.toString() + " is in no peer's prefixes, so its packets would be dropped",
              "add it to the prefixes of the peer behind which it lies");
    }
  }
}

void checkTap(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  ConfigValue device = childOf(places.root, "device");
  for (size_t i = 0; i < config.peers.size(); ++i) {
    if (!config.peers[i].options.group.empty())
      out.add(childOf(places.peers[i], "group"), "is for packets, and a TAP device carries frames",
              "set device.mode to tun, or remove it");
  }
  if (!config.device.bridge.empty() && !config.device.addresses.empty()) {
    out.add(childOf(device, "addresses"), "a port of a bridge has no addresses of its own",
            "give the addresses to the bridge, outside of Braid");
  }
  if (!config.device.routes.empty()) {
    out.add(childOf(device, "routes"), "a TAP device takes no routes",
            "set device.mode to tun, or remove the routes");
  }
}

// Connections are taken over by the routes of their destinations into the device, and a bridge has
// no such routes.
void checkStreamsMode(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  if (config.tunnel.mode != TunnelOptions::Mode::kTap || !config.tunnel.streams.on) return;
  out.add(childOf(places.root, "streams"), "a TAP device carries frames, and no streams",
          "set device.mode to tun, or streams.enabled to off");
}

void checkDevice(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  ConfigValue device = childOf(places.root, "device");
  bool ipv6 = std::any_of(config.device.addresses.begin(), config.device.addresses.end(),
                          [](const InterfaceAddress& a) { return a.address.isV6(); });
  if (ipv6 && config.device.mtu != 0 && config.device.mtu < kSmallestIpv6Mtu) {
    out.add(childOf(device, "mtu"), std::to_string(config.device.mtu) + " is too small for IPv6",
            "use 1280 or more, or auto, or remove the IPv6 addresses");
  }
  if (!config.device.bridge.empty() && config.device.bridge == config.device.name) {
    out.add(childOf(device, "bridge"), "is the device itself",
            "name the bridge that the device shall join");
  }
  HostNumbers numbers = numbersOf(config);
  ConfigValue marks = childOf(device, "bypass-marks");
  for (size_t i = 0; i < config.device.bypassMarks.size(); ++i) {
    const MarkMatch& mark = config.device.bypassMarks[i];
    if (!numbers.mayBeOwn(mark)) continue;
    out.add(itemOf(marks, i),
            mark.toString() + " may be a mark of Braid's own packets, " +
                MarkMatch{numbers.outsideMark(), numbers.outsideMask()}.toString() + " or " +
                MarkMatch{numbers.anyInterceptedMark(), numbers.anyInterceptedMask()}.toString(),
            "name more bits of it, or give Braid other bits by device.mark-mask, such as " +
                hexadecimal(numbers.markMask == 0xff ? 0xff000000 : 0xff));
  }
  ConfigValue uplinks = childOf(places.root, "uplinks");
  for (size_t i = 0; i < config.uplinks.size(); ++i) {
    const std::string& interface = config.uplinks[i].interface;
    if (!interface.empty() &&
        (interface == config.device.name || interface == config.device.bridge)) {
      out.add(childOf(itemOf(uplinks, i), "interface"), "is the tunnel's own device or its bridge",
              "name an interface that leads to the peers");
    }
  }
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

// Whether a forward would take over a port that the gateway itself listens on.
bool takesListen(const Config& config, const PortForward& forward) {
  return forward.protocol == ip::kUdp &&
         std::any_of(config.listen.begin(), config.listen.end(), [&](const Endpoint& own) {
           return own.address.family == forward.to.family && own.port >= forward.firstPort &&
                  own.port <= forward.lastPort;
         });
}

void checkRouter(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  const RouterConfig& router = config.router;
  if (config.tunnel.mode == TunnelOptions::Mode::kTap) {
    for (const char* key : {"nat", "forwards"}) {
      bool used = key[0] == 'n' ? router.natV4 : !router.forwards.empty();
      if (used)
        out.add(childOf(places.root, key),
                "a TAP device bridges frames, and no addresses are translated there",
                "set device.mode to tun, or remove it");
    }
    return;
  }
  ConfigValue list = childOf(places.root, "forwards");
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

// A network is on one side only.
void checkNetworks(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  ConfigValue networks = childOf(childOf(places.root, "device"), "networks");
  for (size_t i = 0; i < config.device.networks.size(); ++i) {
    const Prefix& network = config.device.networks[i];
    for (const PeerConfig& peer : config.peers) {
      const std::vector<Prefix>& theirs = peer.options.prefixes;
      if (std::find(theirs.begin(), theirs.end(), network) == theirs.end()) continue;
      out.add(itemOf(networks, i),
              network.toString() + " is among the prefixes of " + peer.options.name + " as well",
              "a network is on this side or behind a peer; remove it there or here");
    }
  }
}

// An uplink without its own routing table follows the main table. A route there that leads into the
// device would send the tunnel's datagrams into the tunnel.
void checkLoops(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  bool mainTable =
      std::any_of(config.uplinks.begin(), config.uplinks.end(),
                  [](const UplinkConfig& u) { return u.gateway == UplinkConfig::Gateway::kNone; });
  if (!mainTable) return;
  ConfigValue routes = childOf(childOf(places.root, "device"), "routes");
  for (size_t i = 0; i < config.device.routes.size(); ++i) {
    for (const PeerConfig& peer : config.peers) {
      for (const Endpoint& endpoint : peer.options.endpoints) {
        if (!config.device.routes[i].contains(endpoint.address)) continue;
        out.add(routeAt(routes, places, i),
                "holds the endpoint " + endpoint.toString() + " of " + peer.options.name +
                    ", and an uplink with 'gateway: none' would send it into the tunnel",
                "use 'gateway: auto' or the router's address at every uplink, or a narrower route");
        return;
      }
    }
  }
}

// The two halves of a prefix that is shorter than an address.
std::array<Prefix, 2> halvesOf(const Prefix& whole) {
  std::array<Prefix, 2> out{whole, whole};
  for (Prefix& half : out) half.length = whole.length + 1;
  out[1].address.bytes[whole.length / 8] |= static_cast<uint8_t>(0x80 >> whole.length % 8);
  return out;
}

// Whether the routes together cover every address of the prefix.
bool takeAll(const std::vector<Prefix>& routes, const Prefix& whole) {
  auto isPart = [&](const Prefix& r) {
    return whole.contains(r.address) && r.length > whole.length;
  };
  if (std::ranges::any_of(routes,
                          [&](const Prefix& r) { return !isPart(r) && r.contains(whole.address); }))
    return true;
  if (std::ranges::none_of(routes, isPart)) return false;
  auto [low, high] = halvesOf(whole);
  return takeAll(routes, low) && takeAll(routes, high);
}

}  // namespace

bool takeAFamily(const std::vector<Prefix>& routes) {
  return takeAll(routes, *Prefix::parse("0.0.0.0/0")) ||
         takeAll(routes, *Prefix::parse("2000::/3"));
}

std::string familyLeftOut(const std::vector<Prefix>& routes) {
  bool v4 = takeAll(routes, *Prefix::parse("0.0.0.0/0"));
  bool v6 = takeAll(routes, *Prefix::parse("2000::/3"));
  return v4 == v6 ? "" : v4 ? "IPv6" : "IPv4";
}

void warnTogether(const ConfigPlaces& places, const Config& config, ConfigDiagnostics& out) {
  std::string left = familyLeftOut(config.device.routes);
  if (left.empty() || config.device.whenDown == DeviceConfig::WhenDown::kBlock) return;
  ConfigValue routes = childOf(childOf(places.root, "device"), "routes");
  bool v6 = left == "IPv6";
  out.add(routes ? routes : routeAt(routes, places, 0),
          std::string("take all of ") + (v6 ? "IPv4" : "IPv6") + " into the tunnel and leave " +
              left + " to the host's own routes: where it has " + left + ", that leaves in clear",
          std::string("add \"") + (v6 ? "::/0" : "0.0.0.0/0") +
              "\" to them and to the prefixes of the peer, or keep " + left +
              " from leaving this host");
}

void checkTogether(const ConfigPlaces& places, const Config& config,
                   const std::optional<Pin>& ownPin, ConfigDiagnostics& out) {
  for (size_t i = 0; i < config.peers.size(); ++i) {
    if (config.peers[i].options.pin == ownPin) {
      out.add(childOf(places.peers[i], "pin"), "is this gateway's own pin",
              "put the pin of the other gateway");
    }
  }
  checkReach(places, config, out);
  checkSubflows(places, config, out);
  checkStreamsMode(places, config, out);
  checkRouter(places, config, out);
  checkDevice(places, config, out);
  checkNetworks(places, config, out);
  checkLoops(places, config, out);
  if (config.tunnel.mode == TunnelOptions::Mode::kTun) {
    checkTun(places, config, out);
    checkGroups(places, config, out);
  } else {
    checkTap(places, config, out);
  }
}

}  // namespace braid
