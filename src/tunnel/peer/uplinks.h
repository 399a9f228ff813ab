#pragma once

// What all subflows of an uplink share, with all peers: the ceiling of what they send, and the
// meter of what they carry.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inet/addresses.h"
#include "scheduler/path/path_tiers.h"
#include "scheduler/rate/pacer.h"
#include "tunnel/api/options.h"
#include "tunnel/api/status.h"
#include "tunnel/subflow/route.h"

namespace braid {

struct UplinkMeterEntry {
  UplinkSpec spec;
  std::shared_ptr<Pacer> ceiling;    ///< null: no ceiling
  std::optional<UplinkMeter> meter;  ///< nullopt: not metered
  uint64_t carried = 0;  ///< bytes in both directions, with UDP and IP headers, since it was added
  bool isUsable() const { return spec.up && !(meter && meter->closed()); }
};

class UplinkMeters {
 public:
  /// `datagram`: bytes of a full-size datagram.
  explicit UplinkMeters(uint64_t datagram) : datagram_(datagram) {}

  /// Replaces the uplinks. An uplink with the same name as before keeps its meter.
  void set(std::vector<UplinkSpec> specs);
  const std::vector<UplinkMeterEntry>& all() const { return accounts_; }
  /// The uplink of that name; nullptr when there is none.
  UplinkMeterEntry* find(std::string_view name);
  /// Counts a datagram of `bytes` that was sent or received on that route. Returns the uplink if
  /// this datagram closes its meter, otherwise nullptr.
  const UplinkMeterEntry* count(const Route& route, size_t bytes, Time now);

 private:
  uint64_t datagram_;
  std::vector<UplinkMeterEntry> accounts_;
  std::unordered_map<SocketId, size_t> bySocket_;  // socket to index in accounts_
};

/// A route on which an initiator may start a subflow. The name identifies it and stays the same
/// when settings change.
struct NamedRoute {
  std::string name;
  std::string uplink;
  Route route;
  PathPreference own{};              ///< how this side uses the route
  PathPreference peers{};            ///< how the peer shall use it
  std::shared_ptr<Pacer> ceiling{};  ///< limits what this side sends on the uplink; null: no limit
};

/// The routes from each socket of each usable uplink to each of the peer's endpoints there that is
/// of the same address family. The best uplinks come first.
std::vector<NamedRoute> routesTo(const PeerOptions& peer,
                                 const std::vector<UplinkMeterEntry>& uplinks);

inline void UplinkMeters::set(std::vector<UplinkSpec> specs) {
  std::vector<UplinkMeterEntry> before = std::exchange(accounts_, {});
  bySocket_.clear();
  for (UplinkSpec& spec : specs) {
    UplinkMeterEntry account;
    auto known = std::find_if(before.begin(), before.end(),
                              [&](const UplinkMeterEntry& a) { return a.spec.name == spec.name; });
    if (known != before.end()) account = std::move(*known);
    account.spec = std::move(spec);
    if (uint64_t rate = account.spec.preference.ceiling; rate == 0) {
      account.ceiling.reset();
    } else {
      if (!account.ceiling) account.ceiling = std::make_shared<Pacer>(datagram_);
      account.ceiling->setRate(static_cast<double>(rate));
    }
    if (!account.spec.meter) {
      account.meter.reset();
    } else if (account.meter) {
      account.meter->setCap(account.spec.meter->cap);
    } else {
      account.meter.emplace(account.spec.meter->cap, account.spec.meter->used);
    }
    for (const UplinkSpec::Socket& socket : account.spec.sockets)
      bySocket_[socket.id] = accounts_.size();
    accounts_.push_back(std::move(account));
  }
}

inline UplinkMeterEntry* UplinkMeters::find(std::string_view name) {
  auto found = std::find_if(accounts_.begin(), accounts_.end(),
                            [&](const UplinkMeterEntry& a) { return a.spec.name == name; });
  return found != accounts_.end() ? &*found : nullptr;
}

inline const UplinkMeterEntry* UplinkMeters::count(const Route& route, size_t bytes, Time now) {
  auto found = bySocket_.find(route.socket);
  if (found == bySocket_.end()) return nullptr;
  UplinkMeterEntry& account = accounts_[found->second];
  const uint64_t whole = bytes + outerHeaders(route);
  account.carried += whole;
  return account.meter && account.meter->add(whole, now) ? &account : nullptr;
}

// The peer's endpoints that are tried over the uplink of this name: those for all uplinks, then
// those that only this one found.
inline std::vector<Endpoint> endpointsOver(const PeerOptions& peer, const std::string& uplink) {
  std::vector<Endpoint> endpoints = peer.endpoints;
  auto own = peer.endpointsOver.find(uplink);
  if (own == peer.endpointsOver.end()) return endpoints;
  for (const Endpoint& e : own->second) {
    if (std::ranges::find(endpoints, e) == endpoints.end()) endpoints.push_back(e);
  }
  return endpoints;
}

// Whether there are routes over several uplinks, and one of these uplinks has several routes. An
// uplink that is down counts, so that the numbers do not change when it fails and returns.
inline bool needNumbers(const PeerOptions& peer, const std::vector<UplinkMeterEntry>& uplinks) {
  size_t most = 0, used = 0;
  for (const UplinkMeterEntry& uplink : uplinks) {
    const std::vector<Endpoint> endpoints = endpointsOver(peer, uplink.spec.name);
    size_t routes = 0;
    for (const UplinkSpec::Socket& socket : uplink.spec.sockets) {
      routes += static_cast<size_t>(std::ranges::count_if(endpoints, [&](const Endpoint& remote) {
        return remote.address.family == socket.family;
      }));
    }
    most = std::max(most, routes);
    used += routes > 0;
  }
  return most > 1 && used > 1;
}

inline std::vector<NamedRoute> routesTo(const PeerOptions& peer,
                                        const std::vector<UplinkMeterEntry>& uplinks) {
  std::vector<NamedRoute> routes;
  // The peer is told preferences only if some uplink has one, or if it cannot know otherwise which
  // routes share an uplink. Then every uplink needs a number.
  bool telling = std::any_of(uplinks.begin(), uplinks.end(), [](const UplinkMeterEntry& u) {
    return u.spec.preference != PathPreference{} || u.spec.peerCeiling > 0;
  });
  telling |= needNumbers(peer, uplinks);
  for (size_t number = 1; number <= uplinks.size(); ++number) {
    const UplinkMeterEntry& account = uplinks[number - 1];
    const UplinkSpec& uplink = account.spec;
    if (!account.isUsable()) continue;
    PathPreference own = uplink.preference;
    if (telling) own.uplink = static_cast<uint8_t>(number);
    PathPreference peers = own;
    peers.ceiling = uplink.peerCeiling;
    const std::vector<Endpoint> endpoints = endpointsOver(peer, uplink.name);
    // Sockets are counted for each family, so that one family's sockets do not change the names of
    // the other's routes.
    size_t ofV4 = 0, ofV6 = 0;
    for (const UplinkSpec::Socket& socket : uplink.sockets) {
      size_t place = socket.family == Address::Family::kV4 ? ofV4++ : ofV6++;
      for (const Endpoint& remote : endpoints) {
        if (remote.address.family != socket.family) continue;
        std::string name = uplink.name + "#" + std::to_string(place) + ">" + remote.toString();
        routes.push_back({name, uplink.name, {socket.id, {}, remote}, own, peers, account.ceiling});
      }
    }
  }
  // Handshakes try the best uplinks first.
  std::stable_sort(routes.begin(), routes.end(),
                   [](const NamedRoute& a, const NamedRoute& b) { return a.own.use < b.own.use; });
  return routes;
}

}  // namespace braid
