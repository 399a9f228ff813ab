#pragma once

#include <memory>
#include <string>

#include "base/time.h"
#include "gateway/log/log.h"
#include "gateway/network/route_plan.h"
#include "host/host.h"

namespace braid {

/// The owner of what a RoutePlan has at the host: the routing table into the tunnel, the guard, the
/// rules of both, and their packet filter. What others take away is put back.
class TunnelRoutes {
 public:
  /// Time between two looks whether the guard's packet filter is still there.
  static constexpr Duration kLook = 1s;

  /// The references must outlive this. `device`: the name that the host gave the TUN/TAP device.
  TunnelRoutes(Host& host, LogLimiter& log, std::string device, const HostNumbers& numbers)
      : host_(host), log_(log), device_(std::move(device)), numbers_(numbers) {}

  /// Adds what the plan has and the earlier one had not, and removes what only that had. The first
  /// call removes what a killed process left. Throws SystemError; the earlier plan then stays.
  void apply(RoutePlan next);
  /// When to call keep().
  Time deadline() const { return deadline_; }
  void keep(Time now);
  /// Removes the packet filter, unless it is a guard. HostNetwork::undo() removes the rest.
  void stop() { filter_.reset(); }

 private:
  /// `next`: a guard of it is taken over.
  void removeStale(const RoutePlan& next);
  void removeOld(const RoutePlan& next);
  void setFilter(const FilterRules& next);

  Host& host_;
  LogLimiter& log_;
  std::string device_;
  HostNumbers numbers_;
  std::unique_ptr<PacketFilter> filter_;  ///< null: not opened yet, or the host has none
  RoutePlan applied_;
  bool begun_ = false;
  Time deadline_ = kNever;
};

/// Puts the guard into effect without a gateway. Nothing else is touched. Throws SystemError.
void applyGuard(HostNetwork& network, PacketFilter& filter, const std::string& device,
                const RoutePlan& guard);
/// Removes the rules of a guard of this interface that had the numbers `before`. Rules that
/// applyGuard() has added to the same `network` stay. Throws SystemError.
void removeGuardRules(HostNetwork& network, const std::string& device, const HostNumbers& before);
/// Removes the guard of the gateway with this interface. Throws SystemError.
void releaseGuard(HostNetwork& network, PacketFilter& filter, const std::string& device,
                  const HostNumbers& numbers);

}  // namespace braid
