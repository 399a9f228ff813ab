#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log/log.h"
#include "gateway/network/device_configurator.h"
#include "gateway/network/nat_manager.h"
#include "gateway/network/network_reconciler.h"
#include "gateway/network/tunnel_routes.h"
#include "gateway/network/tunnel_watch.h"
#include "host/host.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Everything by which a host's packets come into the tunnel, and past it: the settings of the
/// gateway's interface, the routes to it with their rules and guard, forwarding and address
/// translation, and the networks that the tunnel takes for this side's. All of it follows the
/// configuration, the host's interfaces, and whether the tunnel carries packets.
class TunnelSteering {
 public:
  /// What the routes depend on besides configuration and host.
  struct Needs {
    std::vector<FilterRules::Reply> replies;  ///< RouteSituation::replies
    bool asksHere = false;                    ///< RouteSituation::asksHere
  };

  /// All must outlive this. `config`: the configuration in effect. `device`: the name that the host
  /// gave the gateway's interface. `needs` is first called by apply().
  TunnelSteering(Host& host, const NetworkMonitor& monitor, Tunnel& tunnel, const Config& config,
                 LogLimiter& log, const std::string& device, const HostNumbers& numbers,
                 std::function<Needs()> needs);

  /// Puts `next` into effect, before it is the configuration in effect. Throws SystemError; the
  /// earlier settings then stay.
  void apply(const Config& next);
  /// Follows what Needs or the peers' prefixes say now. What the host refuses is logged, and tried
  /// again.
  void follow();
  /// Follows the host's interfaces. `isLoss`: something that was put there may be gone. True:
  /// names() has changed.
  bool onNetworkChange(bool isLoss, Time now);
  /// Follows whether the tunnel carries packets, and does what is due. Returns what `when-down:
  /// direct` makes of a change.
  std::optional<Event> turn(Time now);
  Time deadline() const;
  /// Gives the device the MTU that the tunnel carries, or tries that again.
  void followMtu(Time now);
  /// Ends what HostNetwork::undo() does not end.
  void stop();

  /// The names of the uplinks' interfaces, as far as they are known.
  const std::vector<std::string>& names() const { return names_; }
  size_t mtu() const { return device_.mtu(); }

 private:
  void applyDevice(const Config& next);
  void applyRoutes(const Config& next);
  void tellOwnNetworks(const Config& next);

  Host& host_;
  const NetworkMonitor& monitor_;
  Tunnel& tunnel_;
  const Config& config_;
  LogLimiter& log_;
  HostNumbers numbers_;
  std::function<Needs()> needs_;
  DeviceConfigurator device_;
  TunnelRoutes routes_;
  NatManager nat_;
  NetworkReconciler reconciler_;
  TunnelWatch watch_;
  std::vector<std::string> names_;
  std::vector<Prefix> ownNetworks_;  ///< as the tunnel was told
  Time retryAt_ = kNever;            ///< when routes that the host refused are tried again
};

}  // namespace braid
