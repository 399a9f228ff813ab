// `uplinks`, `listen` and `peers`: the interfaces that this gateway sends from, the endpoints that
// it listens on, and the gateways that it talks to.
//
// The keys of an uplink that say how it is to be used: `use`, `metered`, `rate-limit`, `weight`.

#include <algorithm>
#include <map>

#include "gateway/config/config_sections.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

constexpr size_t kMaxListen = 32;
constexpr size_t kMaxEndpoints = 16;
constexpr size_t kMaxPrefixes = 1024;
/// There is a limit because each packet for a group looks at all of its peers.
constexpr size_t kMaxGroup = 8;
constexpr uint64_t kMaxSubflowsPerUplink = 8;

// Reports texts that occur twice but must be unique; remembers where each was first given.
class Unique {
 public:
  // True when `text` is new. Otherwise reports where it was given first.
  bool add(const std::string& text, const ConfigValue& at, const std::string& remedy,
           ConfigDiagnostics& out) {
    auto [seen, fresh] = first_.emplace(text, (at.file ? *at.file + ": " : "") + at.key);
    if (!fresh) out.add(at, "'" + text + "' is given in " + seen->second + " already", remedy);
    return fresh;
  }

 private:
  std::map<std::string, std::string> first_;
};

// The items of a value that is one address or a list of addresses, at most one per family.
std::vector<Address> readAddressPair(const ConfigValue& value, ConfigDiagnostics& out) {
  std::vector<ConfigValue> items{value};
  if (value.node->kind != ConfigNode::Kind::kScalar) items = readSequence(value, 2, out);
  std::vector<Address> addresses;
  for (const ConfigValue& item : items) {
    std::optional<Address> address = readAddress(item, out);
    if (!address) continue;
    if (!addresses.empty() && addresses[0].family == address->family) {
      out.add(item, "is a second address of the same family",
              "give one IPv4 and one IPv6 address at most");
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

// Checks that each network belongs to one peer, or to several peers of one group.
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
                 : "a network belongs to one peer; remove one of them, or give both peers the same "
                   "'group'");
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
  std::map<std::string, size_t> groups;  ///< group names, and how many peers each has
};

void readPeerEndpoints(const ConfigValue& value, PeerConfig& peer, Unique& seen,
                       ConfigDiagnostics& out) {
  for (const ConfigValue& item : readSequence(value, kMaxEndpoints, out)) {
    std::optional<RemoteEndpoint> remote = readRemoteEndpoint(item, out);
    if (!remote) continue;
    std::string text = remote->numeric
                           ? remote->numeric->toString()
                           : remote->host.host + ":" + std::to_string(remote->host.port);
    if (!seen.add(text, item, "remove one of them", out)) continue;
    if (remote->numeric) {
      peer.options.endpoints.push_back(*remote->numeric);
    } else {
      peer.hosts.push_back(remote->host);
    }
  }
}

PeerConfig readPeer(const ConfigSection& section, size_t number, PeerUniques& seen,
                    ConfigDiagnostics& out) {
  PeerConfig peer;
  ConfigValue name = section.require("name", "give the peer a name for messages and reports");
  if (auto text = readName(name, out)) {
    peer.options.name = *text;
    seen.names.add(*text, name, "give each peer a name of its own", out);
  }
  ConfigValue pin =
      section.require("pin", "add the pin that 'braidctl keygen' printed at the peer");
  if (auto bytes = readPeerPin(pin, out)) {
    peer.options.pin = *bytes;
    seen.pins.add(pin.node->text, pin,
                  "each gateway has a key of its own; check which pin belongs here", out);
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
    if (*time != 0s && *time < 100ms)
      out.add(keepalive, "is below 100ms", "use 0 for none, or 100ms to 60s");
  }
  return peer;
}

}  // namespace

void readUplinks(const ConfigValue& value, Config& config, ConfigDiagnostics& out) {
  Unique names, interfaces;
  for (const ConfigValue& item : readSequence(value, kMaxUplinks, out)) {
    UplinkConfig uplink;
    if (!item) continue;
    ConfigSection section(item, keysOf("uplinks"), out);
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
  // The kernel binds a port once: a wildcard address takes it at each address of its family. [::]
  // takes none of IPv4.
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
    if (item) add(ConfigSection(item, keysOf("peers"), out));
  }
  for (const ConfigFragment& fragment : fragments) {
    std::vector<std::string_view> keys = keysOf("peers");
    keys.push_back("routes");
    ConfigSection section({&fragment.tree, "", &fragment.file}, keys, out);
    add(section);
    for (const ConfigValue& item : readSequence(section.find("routes"), kMaxPrefixes, out)) {
      std::optional<Prefix> route = readPrefix(item, out);
      std::vector<Prefix>& routes = config.device.routes;
      if (!route || std::find(routes.begin(), routes.end(), *route) != routes.end()) continue;
      routes.push_back(*route);
      places.addedRoutes.push_back(item);
    }
  }
  bool isEmpty =
      value && value.node->kind == ConfigNode::Kind::kSequence && value.node->items.empty();
  // A gateway that listens may have no peers yet and wait for invited ones.
  if (isEmpty && config.peers.empty() && config.listen.empty())
    out.add(value, "is empty", "add the gateways at the other end with name, pin and prefixes");
  if (config.peers.size() > kMaxPeers)
    out.add(value,
            "has " + std::to_string(config.peers.size()) + " items with those of peers-folder",
            "keep to " + std::to_string(kMaxPeers));
  return places;
}

namespace {

constexpr std::string_view kUses[] = {"normal", "metered", "backup"};  // in the order of PathUse
constexpr std::string_view kPeriods[] = {"day", "week", "month"};
constexpr std::string_view kWeekdays[] = {"sunday",   "monday", "tuesday", "wednesday",
                                          "thursday", "friday", "saturday"};
/// Bytes. A smaller cap would be little more than the reserve that is kept free
/// (UplinkMeter::reserve()).
constexpr uint64_t kSmallestCap = 10'000'000;
constexpr uint64_t kLargestCap = 1'000'000'000'000'000;
constexpr uint64_t kBits = 8;

template <size_t N>
std::optional<unsigned> readIndex(const ConfigValue& value, const std::string_view (&names)[N],
                                  ConfigDiagnostics& out) {
  std::optional<std::string> name = readChoice(value, names, out);
  if (!name) return std::nullopt;
  return static_cast<unsigned>(
      std::find(std::begin(names), std::end(names), std::string_view(*name)) - std::begin(names));
}

MeterPeriod readPeriod(const ConfigSection& section, ConfigDiagnostics& out) {
  using Unit = MeterPeriod::Unit;
  MeterPeriod period;
  if (auto unit = readIndex(section.find("period"), kPeriods, out))
    period.unit = static_cast<Unit>(*unit);
  assign(period.hour, readNumber(section.find("reset-hour"), 0, 23, out));
  ConfigValue day = section.find("reset-day");
  switch (period.unit) {
    case Unit::kDay:
      if (day)
        out.add(day, "has no effect with period day", "remove it, or set period: month or week");
      break;
    case Unit::kWeek:
      assign(period.day, readIndex(day, kWeekdays, out));
      break;
    case Unit::kMonth:
      assign(period.day, readNumber(day, 1, 31, out));
      break;
  }
  return period;
}

std::optional<UplinkConfig::Meter> readMeter(const ConfigValue& value, ConfigDiagnostics& out) {
  if (!value) return std::nullopt;
  ConfigSection section(value, keysOf("uplinks.metered"), out);
  UplinkConfig::Meter meter;
  assign(meter.cap,
         readByteCount(section.require("cap", "add the bytes that a period allows, such as 10GB"),
                       kSmallestCap, kLargestCap, out));
  meter.period = readPeriod(section, out);
  return meter;
}

void readLimit(const ConfigValue& value, UplinkConfig& uplink, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, keysOf("uplinks.rate-limit"), out);
  constexpr uint64_t kLow = PathPreference::kMinCeiling * kBits,
                     kHigh = PathPreference::kMaxCeiling * kBits;
  ConfigValue up = section.find("up"), down = section.find("down");
  if (auto rate = readBitRate(up, kLow, kHigh, out)) uplink.preference.ceiling = *rate / kBits;
  if (auto rate = readBitRate(down, kLow, kHigh, out)) uplink.peerCeiling = *rate / kBits;
  if (value.node->kind == ConfigNode::Kind::kMap && !up && !down)
    out.add(value, "limits nothing", "add up, down or both, such as {up: 5Mbit/s, down: 20Mbit/s}");
}

}  // namespace

void readPreference(const ConfigSection& section, UplinkConfig& uplink, ConfigDiagnostics& out) {
  uplink.meter = readMeter(section.find("metered"), out);
  if (uplink.meter) uplink.preference.use = PathUse::kMetered;
  if (auto use = readIndex(section.find("use"), kUses, out))
    uplink.preference.use = static_cast<PathUse>(*use);
  readLimit(section.find("rate-limit"), uplink, out);
  assign(uplink.preference.weight,
         readNumber(section.find("weight"), 1, PathPreference::kMaxWeight, out));
}

}  // namespace braid
