#include "gateway/uplinks/uplink.h"

#include <algorithm>
#include <utility>

#include "host/system.h"

namespace braid {

namespace {

using Family = Address::Family;

// Whether the settings that sockets and routes depend on are equal.
bool sameSettings(const UplinkConfig& a, const UplinkConfig& b) {
  return a.name == b.name && a.selector() == b.selector() && a.subflows == b.subflows &&
         a.gateway == b.gateway && a.gateways == b.gateways && a.sources == b.sources;
}

}  // namespace

Uplinks::Uplinks(SocketTable& sockets, HostNetwork& network, SocketIds& ids,
                 const HostNumbers& numbers)
    : sockets_(sockets), network_(network), ids_(ids), numbers_(numbers) {}

std::vector<FilterRules::Reply> Uplinks::replyMarks() const {
  std::vector<FilterRules::Reply> out;
  for (const Uplink& u : uplinks_) {
    if (replies_ && u.now.link) out.push_back({u.now.interface, numbers_.replyMark(u.slot)});
  }
  return out;
}

std::vector<Uplinks::Exit> Uplinks::exits() const {
  std::vector<Exit> out;
  for (const Uplink& u : uplinks_) {
    if (!u.now.up) continue;
    Exit& exit = out.emplace_back(Exit{u.config.name, u.now.interface});
    if (replies_ && u.routed) exit.mark = numbers_.replyMark(u.slot);
    for (const RouteSpec& route : u.now.routes)
      (route.destination.address.isV4() ? exit.v4 : exit.v6) = true;
  }
  return out;
}

unsigned Uplinks::freeSlot() const {
  unsigned slot = 0;
  while (std::any_of(uplinks_.begin(), uplinks_.end(),
                     [&](const Uplink& u) { return u.slot == slot; }))
    ++slot;
  return slot;
}

void Uplinks::configure(std::vector<UplinkConfig> configs, const NetworkTable& table) {
  std::vector<Uplink> before = std::exchange(uplinks_, {});
  std::vector<std::optional<Uplink>> kept(configs.size());
  for (Uplink& u : before) {
    auto same = std::find_if(configs.begin(), configs.end(),
                             [&](const UplinkConfig& c) { return sameSettings(c, u.config); });
    if (same == configs.end()) {
      closeUplink(u);
    } else {
      u.config = *same;  // settings that sockets do not depend on may differ
      kept[static_cast<size_t>(same - configs.begin())] = std::move(u);
    }
  }
  // Adds the kept uplinks first, so that a new one does not take their slots, and then restores the
  // order of the configuration.
  for (auto& u : kept) {
    if (u) uplinks_.push_back(*u);
  }
  std::vector<Uplink> ordered;
  for (size_t i = 0; i < configs.size(); ++i) {
    if (!kept[i]) {
      kept[i].emplace();
      kept[i]->config = std::move(configs[i]);
      kept[i]->slot = freeSlot();
      uplinks_.push_back(*kept[i]);
    }
    ordered.push_back(std::move(*kept[i]));
  }
  uplinks_ = std::move(ordered);
  update(table);
}

bool Uplinks::update(const NetworkTable& table) {
  bool changed = false;
  for (Uplink& u : uplinks_) changed |= refresh(u, table);
  return changed;
}

bool Uplinks::refresh(Uplink& uplink, const NetworkTable& table) {
  UplinkDecision wanted = decideUplink(uplink.config, {numbers_, uplink.slot, replies_}, table,
                                       uplink.now.v4, uplink.now.v6, uplink.dead);
  UplinkDecision before = uplink.now;
  const Link* link = table.find(uplink.config.selector());
  unsigned switchedOff = link ? link->switchedOff : 0;
  if (!wanted.up || wanted.link != before.link || switchedOff != uplink.switchedOff)
    uplink.routed = false;
  uplink.switchedOff = switchedOff;

  bool changed = false;
  uplink.failed = false;
  auto attempt = [&](auto&& action) {
    try {
      action();
      return true;
    } catch (const SystemError& e) {
      uplink.failed = true;
      wanted.reason = e.what();
      return false;
    }
  };
  // A refusal for one address family does not affect the routes and sockets of the other.
  if (wanted.up && attempt([&] { clearRouting(uplink, wanted); })) {
    for (Family family : {Family::kV4, Family::kV6}) {
      if (!attempt([&] { applyRouting(uplink, wanted, family); }))
        (family == Family::kV4 ? wanted.v4 : wanted.v6) = {};
    }
    uplink.routed = !uplink.failed;
    wanted.up = wanted.v4.bits() || wanted.v6.bits();
  } else {
    wanted.up = false;
  }
  for (Family family : {Family::kV4, Family::kV6}) {
    attempt([&] { applySockets(uplink, wanted, family, changed); });
  }
  wanted.up = wanted.up && !uplink.sockets.empty();
  // The rules stay while the link is down; they match nothing then. Of a family that was refused
  // only what was set is remembered.
  if (!wanted.up || uplink.failed) {
    wanted.routes = uplink.now.routes;
    wanted.rules = uplink.now.rules;
  }
  uplink.now = std::move(wanted);
  note(uplink);
  return changed || uplink.now.up != before.up;
}

// Removes what is not wanted any more.
void Uplinks::clearRouting(Uplink& uplink, const UplinkDecision& wanted) {
  bool same = wanted.routes == uplink.now.routes && wanted.rules == uplink.now.rules;
  if (uplink.routed && same) return;
  // What stays wanted is left alone: one family's trouble must not open a gap for the other.
  if (!same) dropRouting(uplink, &wanted);
  if (!wanted.routes.empty()) network_.removeStaleRoutes(numbers_.uplinkTable(uplink.slot));
}

void Uplinks::applyRouting(Uplink& uplink, const UplinkDecision& wanted, Family family) {
  if (uplink.routed) return;
  // Each item is remembered at once, and earlier ones stay remembered. So when an item is refused
  // in the middle, everything that was set can still be removed.
  auto put = [](auto& known, const auto& item, auto&& add) {
    add(item);
    if (std::find(known.begin(), known.end(), item) == known.end()) known.push_back(item);
  };
  for (const RouteSpec& r : wanted.routes) {
    if (r.destination.address.family == family)
      put(uplink.now.routes, r, [&](const RouteSpec& route) { network_.addRoute(route); });
  }
  for (const RuleSpec& r : wanted.rules) {
    if (r.family == family)
      put(uplink.now.rules, r, [&](const RuleSpec& rule) { network_.addRule(rule); });
  }
}

// An item that cannot be removed stays remembered, and the others are removed all the same.
void Uplinks::dropRouting(Uplink& uplink, const UplinkDecision* except) {
  std::optional<SystemError> refusal;
  auto drop = [&](auto& known, const auto* kept, auto&& remove) {
    std::erase_if(known, [&](const auto& item) {
      if (kept && std::find(kept->begin(), kept->end(), item) != kept->end()) return false;
      try {
        remove(item);
        return true;
      } catch (const SystemError& e) {
        if (!refusal) refusal = e;
        return false;
      }
    });
  };
  drop(uplink.now.rules, except ? &except->rules : nullptr,
       [&](const RuleSpec& r) { network_.removeRule(r); });
  drop(uplink.now.routes, except ? &except->routes : nullptr,
       [&](const RouteSpec& r) { network_.removeRoute(r); });
  uplink.routed = false;
  if (refusal) throw *refusal;
}

void Uplinks::applySockets(Uplink& uplink, const UplinkDecision& wanted, Family family,
                           bool& changed) {
  const Address& source = wanted.source(family);
  auto have =
      static_cast<unsigned>(std::count_if(uplink.sockets.begin(), uplink.sockets.end(),
                                          [&](const auto& s) { return s.family == family; }));
  bool moved = wanted.link != uplink.now.link || source != uplink.now.source(family);
  if (have > 0 && moved) {
    closeSockets(uplink, family);
    have = 0;
    changed = true;
  }
  // Wait for the link: a socket opened on a dead link could not be told from one that lost its
  // link.
  if (!source.bits() || !wanted.up) return;
  for (; have < uplink.config.subflows; ++have) {
    SocketId id = ids_.take();
    try {
      SocketOptions options;
      options.local = source;
      options.interface = wanted.interface;
      sockets_.open(id, options);
    } catch (...) {
      ids_.release(id);
      throw;
    }
    uplink.sockets.push_back({id, family});
    changed = true;
  }
}

bool Uplinks::hasAlternatives(const NetworkTable& table) const {
  return std::ranges::any_of(uplinks_, [&](const Uplink& u) {
    return sourcesOf(u, table, Family::kV4) > 1 || sourcesOf(u, table, Family::kV6) > 1;
  });
}

size_t Uplinks::sourcesOf(const Uplink& uplink, const NetworkTable& table, Family family) const {
  const Link* link = table.find(uplink.config.selector());
  if (!link) return 0;
  return static_cast<size_t>(
      std::count_if(link->addresses.begin(), link->addresses.end(),
                    [&](const LinkAddress& a) { return mayBeSource(uplink.config, a, family); }));
}

bool Uplinks::judgeSources(const std::set<SocketId>& working, const std::set<Family>& called,
                           const NetworkTable& table, Time now) {
  bool changed = false;
  for (Uplink& u : uplinks_) {
    bool retired = false;
    for (Family family : {Family::kV4, Family::kV6}) {
      auto& [source, lived] = family == Family::kV4 ? u.lived4 : u.lived6;
      bool works = std::ranges::any_of(u.sockets, [&](const UplinkSpec::Socket& s) {
        return s.family == family && working.contains(s.id);
      });
      const Address& present = u.now.source(family);
      if (works) u.dead.erase(present);
      if (works || !u.now.up || present != source || !called.contains(family)) {
        source = present;
        lived = now;
      } else if (present.bits() && now - lived >= kSourceTrial && sourcesOf(u, table, family) > 1) {
        u.dead[present] = now;
        notes_.push_back("uplink " + u.config.name + ": nothing comes back to " +
                         present.toString() + ", another address of " + u.now.interface +
                         " is tried");
        retired = true;
      }
    }
    if (retired) changed |= refresh(u, table);
  }
  return changed;
}

void Uplinks::closeSockets(Uplink& uplink, Family family) {
  for (const UplinkSpec::Socket& s : uplink.sockets) {
    if (s.family != family) continue;
    sockets_.close(s.id);
    ids_.release(s.id);
  }
  std::erase_if(uplink.sockets, [&](const UplinkSpec::Socket& s) { return s.family == family; });
}

void Uplinks::closeUplink(Uplink& uplink) {
  closeSockets(uplink, Family::kV4);
  closeSockets(uplink, Family::kV6);
  try {
    dropRouting(uplink);
  } catch (const SystemError& e) {
    notes_.push_back("uplink " + uplink.config.name + ": " + e.what());
  }
}

void Uplinks::close() {
  for (Uplink& u : uplinks_) closeUplink(u);
  uplinks_.clear();
}

std::vector<UplinkSpec> Uplinks::specs() const {
  std::vector<UplinkSpec> out;
  for (const Uplink& u : uplinks_)
    out.push_back({u.config.name, u.sockets, u.now.up, u.config.preference, u.config.peerCeiling});
  return out;
}

std::vector<LookupWay> Uplinks::ways(const std::vector<Address>& inside) const {
  std::vector<LookupWay> out;
  for (const Uplink& u : uplinks_) {
    if (!u.now.up) continue;
    out.push_back({u.config.name, u.now.interface, u.now.link, u.now.v4, u.now.v6,
                   u.config.resolvers, inside, numbers_.ownMark()});
  }
  return out;
}

std::vector<UplinkStatus> Uplinks::status() const {
  std::vector<UplinkStatus> out;
  for (const Uplink& u : uplinks_) {
    UplinkStatus s;
    s.name = u.config.name;
    s.interface = u.now.interface.empty() ? u.config.interface : u.now.interface;
    s.up = u.now.up;
    s.use = useName(u.config.preference.use);
    s.weight = u.config.preference.weight;
    s.upLimit = u.config.preference.ceiling;
    s.downLimit = u.config.peerCeiling;
    for (const Address* a : {&u.now.v4, &u.now.v6}) {
      if (a->bits()) s.addresses.push_back(a->toString());
    }
    for (const Address& g : u.config.gateways)
      s.gateway += (s.gateway.empty() ? "" : ", ") + g.toString();
    out.push_back(std::move(s));
  }
  return out;
}

bool Uplinks::wantsRetry() const {
  return std::any_of(uplinks_.begin(), uplinks_.end(),
                     [](const Uplink& u) { return u.failed || u.doubtful; });
}

void Uplinks::warn() {
  for (Uplink& u : uplinks_) {
    if (!u.doubtful) continue;
    u.warned = u.now.reason;
    note(u);
  }
}

void Uplinks::note(Uplink& uplink) {
  const UplinkDecision& now = uplink.now;
  if (!now.up || now.reason.empty()) uplink.warned.clear();
  uplink.doubtful = now.up && !uplink.failed && now.reason != uplink.warned;
  std::string line = "uplink " + uplink.config.name + (now.up ? " is up" : " is down");
  if (now.up && now.v4.bits()) line += ", " + now.v4.toString();
  if (now.up && now.v6.bits()) line += ", " + now.v6.toString();
  if (!now.reason.empty() && !uplink.doubtful) line += ": " + now.reason;
  if (line == uplink.noted) return;
  uplink.noted = line;
  notes_.push_back(std::move(line));
}

std::vector<std::string> Uplinks::takeNotes() {
  return std::exchange(notes_, {});
}

}  // namespace braid
