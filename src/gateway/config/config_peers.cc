// Checks of uplinks, of `listen` and of peers; the peers of the main file and of the fragments.

#include <algorithm>
#include <map>

#include "base/name.h"
#include "gateway/config/config_checks.h"
#include "gateway/config/settings.h"

namespace braid {

namespace {

constexpr size_t kMaxPrefixes = 1024;
/// There is a limit because each packet for a group looks at all of its peers.
constexpr size_t kMaxGroup = 8;

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

void checkPeer(const ConfigValue& item, const PeerConfig& peer, size_t number, PeerUniques& seen,
               ConfigDiagnostics& out) {
  const PeerOptions& options = peer.options;
  ConfigValue pin = childOf(item, "pin"), endpoints = childOf(item, "endpoints"),
              prefixes = childOf(item, "prefixes");
  seen.names.add(options.name, childOf(item, "name"), "give each peer a name of its own", out);
  seen.pins.add(pin.node->text, pin,
                "each gateway has a key of its own; check which pin belongs here", out);
  for (size_t i = 0; i < options.endpoints.size() + peer.hosts.size(); ++i) {
    ConfigValue each = itemOf(endpoints, i);
    seen.endpoints.add(readRemoteEndpoint(each, out)->toString(), each, "remove one of them", out);
  }
  if (!options.group.empty() && ++seen.groups[options.group] == kMaxGroup + 1)
    out.add(childOf(item, "group"), "has more than " + std::to_string(kMaxGroup) + " peers",
            "remove some of them");
  for (size_t i = 0; i < options.prefixes.size(); ++i)
    seen.prefixes.add(options.prefixes[i], options.group, itemOf(prefixes, i), number, out);
}

// The routes of a fragment; those that are there already stay as they are.
void readRoutes(const ConfigValue& fragment, Config& config, ConfigPlaces& places,
                ConfigDiagnostics& out) {
  std::vector<Prefix>& routes = config.device.routes;
  for (const ConfigValue& item : readSequence(childOf(fragment, "routes"), kMaxPrefixes, out)) {
    std::optional<Prefix> route = readPrefix(item, out);
    if (!route || std::ranges::find(routes, *route) != routes.end()) continue;
    routes.push_back(*route);
    places.addedRoutes.push_back(item);
  }
}

constexpr std::string_view kWeekdays[] = {"sunday",   "monday", "tuesday", "wednesday",
                                          "thursday", "friday", "saturday"};

}  // namespace

void checkUplink(const ConfigValue& item, UplinkConfig& uplink, ConfigDiagnostics& out) {
  size_t given = 0;
  for (const char* key : {"interface", "mac", "path"}) {
    ConfigValue value = childOf(item, key);
    if (value && ++given > 1)
      out.add(value, "is a second way to name the interface",
              "keep one of interface, mac and path");
  }
  if (given == 0)
    out.add(item, "names no interface",
            "add interface, such as wlan0; 'ip link' lists them. Or mac, or path");
  // A name of 1 to 32 bytes, as for reports; an altname may be longer.
  if (uplink.name.empty() && given == 1) {
    if (uplink.interface.empty() || uplink.interface.size() > kLongestName)
      out.add(item, "has no name", "give the uplink a name for messages and reports");
    uplink.name = uplink.interface;
  }
  if (uplink.meter && !childOf(item, "use")) uplink.preference.use = PathUse::kMetered;
}

void checkRateLimit(const ConfigValue& section, UplinkConfig& uplink, ConfigDiagnostics& out) {
  if (uplink.preference.ceiling == 0 && uplink.peerCeiling == 0)
    out.add(section, "limits nothing",
            "add up, down or both, such as {up: 5Mbit/s, down: 20Mbit/s}");
}

void checkMeter(const ConfigValue& section, UplinkConfig::Meter& meter, ConfigDiagnostics& out) {
  ConfigValue day = childOf(section, "reset-day");
  switch (meter.period.unit) {
    case MeterPeriod::Unit::kDay:
      if (day)
        out.add(day, "has no effect with period day", "remove it, or set period: month or week");
      break;
    case MeterPeriod::Unit::kWeek:
      if (std::optional<std::string> name = readChoice(day, kWeekdays, out))
        meter.period.day =
            static_cast<unsigned>(std::ranges::find(kWeekdays, *name) - std::begin(kWeekdays));
      break;
    case MeterPeriod::Unit::kMonth:
      assign(meter.period.day, readNumber(day, 1, 31, out));
      break;
  }
}

void checkUplinks(const ConfigValue& list, Config& config, ConfigDiagnostics& out) {
  Unique names, interfaces;
  for (size_t i = 0; i < config.uplinks.size(); ++i) {
    ConfigValue item = itemOf(list, i), interface = childOf(item, "interface"),
                name = childOf(item, "name");
    for (const char* key : {"mac", "path"}) {
      if (!interface) interface = childOf(item, key);
    }
    const UplinkConfig& uplink = config.uplinks[i];
    interfaces.add(uplink.interface + uplink.mac + uplink.path, interface,
                   "use 'subflows' for several subflows on one interface", out);
    names.add(config.uplinks[i].name, name ? name : interface, "give each uplink its own name",
              out);
  }
}

void checkListen(const ConfigValue& list, Config& config, ConfigDiagnostics& out) {
  Unique seen;
  std::map<Endpoint, ConfigValue> all;
  for (size_t i = 0; i < config.listen.size(); ++i) {
    if (seen.add(config.listen[i].toString(), itemOf(list, i), "remove one of them", out))
      all.emplace(config.listen[i], itemOf(list, i));
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

void readPeers(const ConfigValue& list, const ConfigFragments& fragments, Config& config,
               ConfigPlaces& places, ConfigDiagnostics& out) {
  size_t before = out.size();
  auto read = [&](const ConfigValue& item) {
    PeerConfig& peer = config.peers.emplace_back();
    readSection(item, &peer, out);
    if (item.file) peer.file = *item.file;
    places.peers.push_back(item);
  };
  for (const ConfigValue& item : readSequence(list, kMaxPeers, out)) {
    if (item) read(item);
  }
  for (const ConfigFragment& fragment : fragments) {
    read({&fragment.tree, "", &fragment.file});
    readRoutes(places.peers.back(), config, places, out);
  }
  bool isEmpty = list && list.node->kind == ConfigNode::Kind::kSequence && list.node->items.empty();
  // A gateway that listens may have no peers yet and wait for invited ones.
  if (isEmpty && config.peers.empty() && config.listen.empty())
    out.add(list, "is empty", "add the gateways at the other end with name, pin and prefixes");
  if (config.peers.size() > kMaxPeers)
    out.add(list,
            "has " + std::to_string(config.peers.size()) + " items with those of peers-folder",
            "keep to " + std::to_string(kMaxPeers));
  if (out.size() != before) return;
  PeerUniques seen;
  for (size_t i = 0; i < config.peers.size(); ++i)
    checkPeer(places.peers[i], config.peers[i], i, seen, out);
}

}  // namespace braid
