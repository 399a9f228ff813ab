// `uplinks`, `listen` and `peers`: what this gateway sends from, listens on and talks to.

#include <algorithm>
#include <map>

#include "gateway/config/config_sections.h"
#include "tunnel/wire/pin.h"

namespace braid {
namespace {

constexpr size_t kMaxListen = 32;
constexpr size_t kMaxEndpoints = 16;
constexpr size_t kMaxPrefixes = 1024;
/// Ours: each packet for a group looks at all of its peers.
constexpr size_t kMaxGroup = 8;
constexpr uint64_t kMaxSubflowsPerUplink = 8;

// Finds what must differ and does not, and remembers where each text was first given.
class Unique {
 public:
  // True when `text` is new. Otherwise reports where the text was given first.
  bool add(const std::string& text, const ConfigValue& at, const std::string& remedy,
           ConfigDiagnostics& out) {
    auto [seen, fresh] = first_.emplace(text, (at.file ? *at.file + ": " : "") + at.key);
    if (!fresh) out.add(at, "'" + text + "' is given in " + seen->second + " already", remedy);
    return fresh;
  }

 private:
  std::map<std::string, std::string> first_;
};

// The items of a value that may be one address or a list of them, at most one per family.
std::vector<Address> readAddressPair(const ConfigValue& value, ConfigDiagnostics& out) {
  std::vector<ConfigValue> items{value};
  if (value.node->kind != ConfigNode::Kind::kScalar) items = readSequence(value, 2, out);
  std::vector<Address> addresses;
  for (const ConfigValue& item : items) {
    std::optional<Address> address = readAddress(item, out);
    if (!address) continue;
    if (!addresses.empty() && addresses[0].family == address->family) {
      out.add(item, "is a second address of the same family", "give one IPv4 and one IPv6 address at most");
      continue;
    }
    addresses.push_back(*address);
  }
  return addresses;
}

void readUplinkGateway(const ConfigValue& value, UplinkConfig& uplink, ConfigDiagnostics& out) {
  if (!value) return;
  bool word = value.node->kind == ConfigNode::Kind::kScalar;
  if (word && value.node->text == "auto") return;
  if (word && value.node->text == "none") {
    uplink.gateway = UplinkConfig::Gateway::kNone;
    return;
  }
  uplink.gateway = UplinkConfig::Gateway::kAddress;
  uplink.gateways = readAddressPair(value, out);
}

std::optional<Pin> readPeerPin(const ConfigValue& value, ConfigDiagnostics& out) {
  std::optional<std::string> text = readText(value, out);
  if (!text) return std::nullopt;
  std::optional<Pin> pin = parsePin(*text);
  if (!pin) {
    out.add(value, "is no pin",
            "write 'sha256:' and 44 base64 characters as 'braidctl pin FILE.crt' prints them");
  }
  return pin;
}

// A network belongs to one peer, or to several of one group.
class PrefixOwners {
 public:
  bool add(const Prefix& prefix, const std::string& group, const ConfigValue& at, size_t peer,
           ConfigDiagnostics& out) {
    auto [seen, fresh] =
        first_.emplace(prefix, Owner{(at.file ? *at.file + ": " : "") + at.key, group, peer});
    Owner& owner = seen->second;
    if (fresh) return true;
    if (!group.empty() && owner.group == group && owner.lastPeer != peer) {
      owner.lastPeer = peer;
      return true;
    }
    bool same = owner.lastPeer == peer;
    out.add(at, "'" + prefix.toString() + "' is given in " + owner.key + " already",
            same ? "a network belongs to one peer; remove one of them"
                 : "a network belongs to one peer; remove one of them, or give both peers the same 'group'");
    return false;
  }

 private:
  struct Owner {
    std::string key, group;
    size_t lastPeer;
  };
  std::map<Prefix, Owner> first_;
};

struct PeerUniques {
  Unique names, pins, endpoints;
  PrefixOwners prefixes;
  std::map<std::string, size_t> groups;  ///< and how many peers each has
};

void readPeerEndpoints(const ConfigValue& value, PeerConfig& peer, Unique& seen, ConfigDiagnostics& out) {
  for (const ConfigValue& item : readSequence(value, kMaxEndpoints, out)) {
    std::optional<RemoteEndpoint> remote = readRemoteEndpoint(item, out);
    if (!remote) continue;
    std::string text = remote->numeric ? remote->numeric->toString()
                                       : remote->host.host + ":" + std::to_string(remote->host.port);
    if (!seen.add(text, item, "remove one of them", out)) continue;
    if (remote->numeric) {
      peer.options.endpoints.push_back(*remote->numeric);
    } else {
      peer.hosts.push_back(remote->host);
    }
  }
}

PeerConfig readPeer(const ConfigSection& section, size_t number, PeerUniques& seen, ConfigDiagnostics& out) {
  PeerConfig peer;
  ConfigValue name = section.require("name", "give the peer a name for messages and reports");
  if (auto text = readName(name, out)) {
    peer.options.name = *text;
    seen.names.add(*text, name, "give each peer a name of its own", out);
  }
  ConfigValue pin = section.require("pin", "add the pin that 'braidctl keygen' printed at the peer");
  if (auto bytes = readPeerPin(pin, out)) {
    peer.options.pin = *bytes;
    seen.pins.add(pin.node->text, pin, "each gateway has a key of its own; check which pin belongs here",
                  out);
  }
  readPeerEndpoints(section.find("endpoints"), peer, seen.endpoints, out);
  ConfigValue group = section.find("group");
  assign(peer.options.group, readName(group, out));
  if (!peer.options.group.empty() && ++seen.groups[peer.options.group] == kMaxGroup + 1)
    out.add(group, "has more than " + std::to_string(kMaxGroup) + " peers", "remove some of them");
  for (const ConfigValue& item : readSequence(section.find("prefixes"), kMaxPrefixes, out)) {
    std::optional<Prefix> prefix = readPrefix(item, out);
    if (prefix && seen.prefixes.add(*prefix, peer.options.group, item, number, out))
      peer.options.prefixes.push_back(*prefix);
  }
  ConfigValue keepalive = section.find("keepalive");
  if (auto time = readDuration(keepalive, 0s, 60s, out)) {
    peer.options.keepalive = *time;
    if (*time != 0s && *time < 100ms) out.add(keepalive, "is below 100ms", "use 0 for none, or 100ms to 60s");
  }
  return peer;
}

}  // namespace

void readUplinks(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  Unique names, interfaces;
  for (const ConfigValue& item : readSequence(value, kMaxUplinks, out)) {
    UplinkConfig uplink;
    if (!item) continue;
    ConfigSection section(
        item,
        {"name", "interface", "subflows", "gateway", "source", "use", "metered", "rate-limit", "weight"},
        out);
    ConfigValue interface =
        section.require("interface", "name the interface, such as wlan0; 'ip link' lists them");
    if (auto text = readInterface(interface, out)) {
      uplink.interface = *text;
      interfaces.add(*text, interface, "use 'subflows' for several subflows on one interface", out);
    }
    ConfigValue name = section.find("name");
    if (auto text = readName(name, out)) uplink.name = *text;
    if (!name) uplink.name = uplink.interface;
    if (!uplink.name.empty())
      names.add(uplink.name, name ? name : interface, "give each uplink its own name", out);
    if (auto count = readNumber(section.find("subflows"), 1, kMaxSubflowsPerUplink, out)) {
      uplink.subflows = static_cast<unsigned>(*count);
    }
    readUplinkGateway(section.find("gateway"), uplink, out);
    if (ConfigValue source = section.find("source")) uplink.sources = readAddressPair(source, out);
    readPreference(section, uplink, out);
    config.uplinks.push_back(std::move(uplink));
  }
}

void readListen(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  Unique seen;
  std::map<Endpoint, ConfigValue> all;
  for (const ConfigValue& item : readSequence(value, kMaxListen, out)) {
    std::optional<Endpoint> endpoint = readEndpoint(item, out);
    if (!endpoint || !seen.add(endpoint->toString(), item, "remove one of them", out)) continue;
    config.listen.push_back(*endpoint);
    all.emplace(*endpoint, item);
  }
  // The kernel gives a port away once: a wildcard has it at each address of its family. [::] has none of IPv4.
  for (const auto& [endpoint, item] : all) {
    auto wildcard = all.find({Address{endpoint.address.family}, endpoint.port});
    if (wildcard == all.end() || wildcard->first == endpoint) continue;
    out.add(item,
            endpoint.toString() + " is a part of " + wildcard->first.toString() + " (" +
                wildcard->second.key + ")",
            "remove one of them");
  }
}

ConfigPlaces readPeers(const ConfigValue& value, const ConfigFragments& fragments, Config& config,
                       ConfigDiagnostics& out) {
  ConfigPlaces places;
  PeerUniques seen;
  auto add = [&](const ConfigSection& section) {
    config.peers.push_back(readPeer(section, config.peers.size(), seen, out));
    if (section.self().file) config.peers.back().file = *section.self().file;
    places.peers.push_back(section.self());
  };
  for (const ConfigValue& item : readSequence(value, kMaxPeers, out)) {
    if (item) add(ConfigSection(item, {"name", "pin", "endpoints", "prefixes", "keepalive", "group"}, out));
  }
  for (const ConfigFragment& fragment : fragments) {
    ConfigSection section({&fragment.tree, "", &fragment.file},
                          {"name", "pin", "endpoints", "prefixes", "keepalive", "group", "routes"}, out);
    add(section);
    for (const ConfigValue& item : readSequence(section.find("routes"), kMaxPrefixes, out)) {
      std::optional<Prefix> route = readPrefix(item, out);
      std::vector<Prefix>& routes = config.device.routes;
      if (!route || std::find(routes.begin(), routes.end(), *route) != routes.end()) continue;
      routes.push_back(*route);
      places.addedRoutes.push_back(item);
    }
  }
  bool isEmpty = value && value.node->kind == ConfigNode::Kind::kSequence && value.node->items.empty();
  // A gateway that listens may wait for those who are invited.
  if (isEmpty && config.peers.empty() && config.listen.empty())
    out.add(value, "is empty", "add the gateways at the other end with name, pin and prefixes");
  if (config.peers.size() > kMaxPeers)
    out.add(value, "has " + std::to_string(config.peers.size()) + " items with those of peers-folder",
            "keep to " + std::to_string(kMaxPeers));
  return places;
}

}  // namespace braid
