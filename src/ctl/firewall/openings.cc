#include "ctl/firewall/openings.h"

#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "gateway/join/address_plan.h"
#include "host/host_numbers.h"

namespace braid {

namespace {

// The port of the web: a filter that lets nothing else through is meant so.
constexpr uint16_t kWeb = 443;
constexpr size_t kMostPorts = 16;  // of `streams.match` that are tried

bool overlaps(const Prefix& a, const Prefix& b) {
  return a.address.family == b.address.family && a.overlaps(b);
}

Prefix onLink(const LinkAddress& a) {
  return networkOf({a.address, a.prefixLength});
}

// An address of the network that is not one of this host.
std::optional<Address> hostIn(const Prefix& network, const NetworkTable& table) {
  if (network.length == 0) return std::nullopt;
  if (network.length >= network.address.bits()) return network.address;
  Address a = network.address;
  unsigned most = std::min(network.address.bits() - network.length, 7u);
  for (unsigned host = (1u << most) - 1; host-- > 0;) {
    a.bytes[a.view().size() - 1] =
        static_cast<uint8_t>(network.address.bytes[a.view().size() - 1] + host);
    bool isOwn = std::ranges::any_of(table.links(), [&](const auto& entry) {
      return std::ranges::any_of(entry.second.addresses,
                                 [&](const LinkAddress& own) { return own.address == a; });
    });
    if (!isOwn) break;
  }
  return a;
}

// A network of this family behind the tunnel; nullopt: there is none.
std::optional<Prefix> beyond(const Config& config, Address::Family family) {
  std::optional<Prefix> found;
  auto look = [&](const std::vector<Prefix>& networks) {
    for (const Prefix& network : networks) {
      if (network.address.family == family && (!found || network.length < found->length))
        found = network;
    }
  };
  look(config.device.routes);
  if (found) return found;
  for (const PeerConfig& peer : config.peers) look(peer.options.prefixes);
  return found;
}

// With a default route behind the tunnel, nobody there is known to have business in the LAN.
bool hasDefaultBeyond(const Config& config, Address::Family family) {
  std::optional<Prefix> widest = beyond(config, family);
  return widest && widest->length == 0;
}

class Finder {
 public:
  Finder(const Config& config, const NetworkTable& table, const std::vector<FoundRoute>& routes)
      : config_(config), table_(table), routes_(routes) {
    if (const Link* device = table.find(config.device.name))
      deviceIndex_ = static_cast<uint32_t>(device->index);
  }

  std::vector<Opening> run() {
    for (const Endpoint& at : config_.listen) addListen(at);
    if (config_.tunnel.mode != TunnelOptions::Mode::kTun) return std::move(out_);
    for (const Lan& lan : lansOf(config_, table_, routes_)) addLan(lan);
    addNat(Address::Family::kV4, config_.router.natV4);
    addNat(Address::Family::kV6, config_.router.natV6);
    for (const PortForward& forward : config_.router.forwards) addForward(forward);
    return std::move(out_);
  }

 private:
  // The interfaces by which packets of the family come from outside: those with a default route.
  std::vector<const Link*> outer(Address::Family family) const {
    std::vector<const Link*> found;
    for (const auto& [index, link] : table_.links()) {
      if (link.name != config_.device.name && table_.hasDefaultRoute(index, family))
        found.push_back(&link);
    }
    return found;
  }

  // The interfaces by which datagrams for this endpoint come in.
  std::vector<const Link*> outerFor(const Endpoint& at) const {
    std::vector<const Link*> found = outer(at.address.family);
    if (!found.empty()) return found;
    for (const auto& [index, link] : table_.links()) {
      bool has = std::ranges::any_of(link.addresses,
                                     [&](const LinkAddress& a) { return a.address == at.address; });
      if (link.name == "lo" || link.name == config_.device.name) continue;
      if (has) return {&link};
      if (found.empty()) found.push_back(&link);
    }
    return found;
  }

  NftPacket packet(NftPacket::Hook hook, Address::Family family, uint8_t protocol,
                   uint16_t port) const {
    NftPacket out;
    out.hook = hook;
    out.family = family;
    out.protocol = protocol;
    out.port = port;
    return out;
  }
  static void from(NftPacket& p, const Link& link) {
    p.in = link.name;
    p.inIndex = static_cast<uint32_t>(link.index);
  }
  static void to(NftPacket& p, const Link& link) {
    p.out = link.name;
    p.outIndex = static_cast<uint32_t>(link.index);
  }
  void fromTunnel(NftPacket& p) const {
    p.in = config_.device.name;
    p.inIndex = deviceIndex_;
  }
  void toTunnel(NftPacket& p) const {
    p.out = config_.device.name;
    p.outIndex = deviceIndex_;
  }

  void add(Opening::Kind kind, PassRule rule, std::vector<NftPacket> samples) {
    rule.hook = samples.front().hook;
    rule.family = samples.front().family;
    // A listening port is open by all interfaces.
    if (kind != Opening::Kind::kListen) rule.in = samples.front().in;
    rule.out = samples.front().out;
    rule.isForAnswers = samples.front().isAnswer;
    out_.push_back({kind, rule, std::move(samples)});
  }

  void addListen(const Endpoint& at) {
    for (const Link* link : outerFor(at)) {
      NftPacket p = packet(NftPacket::Hook::kInput, at.address.family, IPPROTO_UDP, at.port);
      from(p, *link);
      PassRule rule;
      rule.protocol = IPPROTO_UDP;
      rule.firstPort = rule.lastPort = at.port;
      add(Opening::Kind::kListen, rule, {p});
    }
  }

  void addLan(const Lan& lan) {
    Address::Family family = lan.network.address.family;
    std::optional<Prefix> far = beyond(config_, family);
    if (!far) return;
    std::optional<Address> near = hostIn(lan.network, table_), there = hostIn(*far, table_);
    PassRule rule;
    rule.source = lan.network;
    NftPacket p = packet(NftPacket::Hook::kForward, family, IPPROTO_TCP, kWeb);
    p.source = near;
    p.destination = there;
    from(p, *lan.link);
    toTunnel(p);
    add(Opening::Kind::kOut, rule, {p});
    if (config_.tunnel.streams.on && !config_.streams.match.empty()) addStreams(lan, near);
    NftPacket back = packet(NftPacket::Hook::kForward, family, IPPROTO_TCP, kWeb);
    back.source = there;
    back.destination = near;
    fromTunnel(back);
    to(back, *lan.link);
    rule.source.reset();
    rule.destination = lan.network;
    NftPacket answer = back;
    answer.isAnswer = true;
    add(Opening::Kind::kAnswers, rule, {answer});
    if (!hasDefaultBeyond(config_, family)) add(Opening::Kind::kIn, rule, {back});
  }

  void addStreams(const Lan& lan, const std::optional<Address>& near) {
    std::set<uint16_t> ports;
    for (const StreamRule& match : config_.streams.match) {
      bool isMeant = !match.network || match.network->address.family == lan.network.address.family;
      if (isMeant && ports.size() < kMostPorts) ports.insert(match.firstPort);
    }
    if (ports.empty()) return;
    PassRule rule;
    rule.source = lan.network;
    rule.protocol = IPPROTO_TCP;
    HostNumbers numbers = numbersOf(config_);
    rule.mark = numbers.anyInterceptedMark();
    rule.markMask = numbers.anyInterceptedMask();
    std::vector<NftPacket> samples;
    for (uint16_t port : ports) {
      NftPacket& p = samples.emplace_back(
          packet(NftPacket::Hook::kInput, lan.network.address.family, IPPROTO_TCP, port));
      p.isForeign = true;
      p.mark = rule.mark;
      p.source = near;
      from(p, *lan.link);
    }
    add(Opening::Kind::kStreams, rule, std::move(samples));
  }

  void addNat(Address::Family family, bool on) {
    std::optional<Prefix> inside;
    for (const PeerConfig& peer : config_.peers) {
      for (const Prefix& prefix : peer.options.prefixes)
        if (prefix.address.family == family) inside = prefix;
    }
    for (const InterfaceAddress& own : config_.device.addresses)
      if (!inside && own.address.family == family) inside = networkOf(own);
    if (!on || !inside) return;
    for (const Link* link : outer(family)) {
      NftPacket p = packet(NftPacket::Hook::kForward, family, IPPROTO_TCP, kWeb);
      p.source = hostIn(*inside, table_);
      fromTunnel(p);
      to(p, *link);
      add(Opening::Kind::kNat, {}, {p});
      NftPacket answer = packet(NftPacket::Hook::kForward, family, IPPROTO_TCP, kWeb);
      answer.destination = p.source;
      answer.isAnswer = true;
      from(answer, *link);
      toTunnel(answer);
      add(Opening::Kind::kAnswers, {}, {answer});
    }
  }

  void addForward(const PortForward& forward) {
    uint16_t port = forward.toPort != 0 ? forward.toPort : forward.firstPort;
    for (const Link* link : outer(forward.to.family)) {
      NftPacket p = packet(NftPacket::Hook::kForward, forward.to.family, forward.protocol, port);
      p.destination = forward.to;
      p.isTranslated = true;
      from(p, *link);
      toTunnel(p);
      PassRule rule;
      rule.destination = Prefix{forward.to, forward.to.bits()};
      rule.protocol = forward.protocol;
      rule.firstPort = port;
      rule.lastPort = forward.toPort != 0 ? forward.toPort : forward.lastPort;
      add(Opening::Kind::kForward, rule, {p});
    }
  }

  const Config& config_;
  const NetworkTable& table_;
  const std::vector<FoundRoute>& routes_;
  uint32_t deviceIndex_ = 0;
  std::vector<Opening> out_;
};

}  // namespace

std::string Opening::toString() const {
  auto with = [](const std::string& interface, const std::optional<Prefix>& network) {
    return interface + (network ? " (" + network->toString() + ")" : "");
  };
  std::string family = rule.family == Address::Family::kV4 ? "IPv4" : "IPv6";
  std::string ends = with(rule.in, rule.source) + " to " + with(rule.out, rule.destination);
  switch (kind) {
    case Kind::kListen:
      return "datagrams to UDP port " + std::to_string(rule.firstPort) + " that come in by " +
             samples.front().in;
    case Kind::kStreams:
      return "TCP connections of " + with(rule.in, rule.source) +
             " that are taken over for streams";
    case Kind::kAnswers:
      return family + " answers from " + ends;
    case Kind::kForward:
      return "connections to port " + std::to_string(rule.firstPort) + " of " +
             rule.destination->address.toString() + " (forwards) that come in by " + rule.in;
    case Kind::kIn:
      return "new " + family + " connections from " + ends;
    case Kind::kOut:
    case Kind::kNat:
      break;
  }
  return family + " packets from " + ends;
}

std::vector<Lan> lansOf(const Config& config, const NetworkTable& table,
                        const std::vector<FoundRoute>& routes) {
  std::vector<Lan> out;
  auto add = [&](const Prefix& network, const Link& link, bool isOnLink) {
    bool isKnown = std::ranges::any_of(out, [&](const Lan& lan) {
      return lan.network == network && lan.link->index == link.index;
    });
    if (!isKnown && link.name != "lo" && link.name != config.device.name)
      out.push_back({network, &link, isOnLink});
  };
  for (const Prefix& network : config.device.networks) {
    for (const auto& [index, link] : table.links()) {
      for (const LinkAddress& a : link.addresses)
        if (overlaps(network, onLink(a))) add(network, link, true);
    }
    for (const FoundRoute& route : routes) {
      auto link = table.links().find(route.device);
      bool isMeant = route.unicast && route.spec.destination.length > 0 &&
                     overlaps(network, route.spec.destination);
      if (isMeant && link != table.links().end()) add(network, link->second, false);
    }
  }
  return out;
}

std::vector<Opening> openingsOf(const Config& config, const NetworkTable& table,
                                const std::vector<FoundRoute>& routes) {
  return Finder(config, table, routes).run();
}

std::vector<Obstacle> obstaclesTo(const std::vector<Opening>& openings, const NftFirewall& wall) {
  std::vector<Obstacle> out;
  for (const Opening& opening : openings) {
    std::vector<NftDrop> seen;
    for (const NftPacket& sample : opening.samples) {
      for (NftDrop& drop : wall.drops(sample)) {
        if (std::ranges::find(seen, drop) != seen.end()) continue;
        seen.push_back(drop);
        out.push_back({opening, std::move(drop), sample.port});
      }
    }
  }
  return out;
}

std::vector<FoundRoute> readMainRoutes() {
  std::vector<FoundRoute> out;
  NetlinkSocket(0).dump(RTM_GETROUTE, AF_UNSPEC, [&](const nlmsghdr& message) {
    std::optional<FoundRoute> route = parseRoute(message);
    if (route && route->spec.table == kMainTable) out.push_back(std::move(*route));
  });
  return out;
}

}  // namespace braid
