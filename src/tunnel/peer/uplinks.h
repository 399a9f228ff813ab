#pragma once

// What all subflows of an uplink share, with all peers: the ceiling of what they send, and the
// meter of what they carry.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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
  std::unordered_map<SocketId, size_t> metered_;  // socket to index in accounts_
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

/// The routes from each socket of each usable uplink to each endpoint of the same address family.
/// The best uplinks come first.
std::vector<NamedRoute> routesTo(const std::vector<Endpoint>& endpoints,
                                 const std::vector<UplinkMeterEntry>& uplinks);

}  // namespace braid
