#pragma once

#include <string>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log.h"
#include "host/host_network.h"

namespace braid {

/// The MTU that the device shall have, in bytes. `innerMtu`: what the tunnel carries (Tunnel::innerMtu).
size_t deviceMtu(const Config& config, size_t innerMtu);

/// The route of one of DeviceConfig::routes. One of all IPv6, or of a half or eighth of it, has the best metric: the host's
/// own default routes do not count beside it.
RouteSpec deviceRoute(const Prefix& destination, const std::string& device);

/// Gives the device its addresses, routes, bridge and MTU.
class DeviceKeeper {
 public:
  /// `network` must outlive this. `device`: the name that the host gave it.
  DeviceKeeper(HostNetwork& network, std::string device) : network_(network), name_(std::move(device)) {}

  /// Adds what a configuration asks for and takes away what the one before asked for. Throws SystemError:
  /// then what was there stays. What cannot be taken away is logged.
  void apply(const DeviceConfig& next);
  /// A refusal is logged, and the host asked again when deadline() has passed.
  void setMtu(size_t mtu, LogLimiter& log, Time now);
  /// When to call setMtu() again.
  Time deadline() const { return mtuAgain_; }
  const std::string& name() const { return name_; }
  /// The MTU that was asked for last, in bytes.
  size_t mtu() const { return mtu_; }

 private:
  HostNetwork& network_;
  std::string name_;
  DeviceConfig applied_;
  size_t mtu_ = 0;
  Time mtuAgain_ = kNever;
};

}  // namespace braid
