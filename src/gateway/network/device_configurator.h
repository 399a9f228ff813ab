#pragma once

#include <string>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log/log.h"
#include "host/network.h"

namespace braid {

/// The MTU that the device is to have, in bytes. `innerMtu`: the largest packet that the tunnel
/// carries (Tunnel::innerMtu).
size_t deviceMtu(const Config& config, size_t innerMtu);

/// Sets the device's addresses, bridge and MTU.
class DeviceConfigurator {
 public:
  /// `network` must outlive this. `device`: the name that the host gave it.
  DeviceConfigurator(HostNetwork& network, std::string device)
      : network_(network), name_(std::move(device)) {}

  /// Adds what the new configuration asks for, and removes what only the earlier one asked for.
  /// Throws SystemError when something cannot be added; the earlier settings then stay. What cannot
  /// be removed is logged.
  void apply(const DeviceConfig& next);
  /// apply() with the earlier configuration, after the new one could not be put into effect.
  /// Failures are logged.
  void applyOrWarn(const DeviceConfig& before);
  /// When the host refuses, logs it; call again when deadline() has passed.
  void setMtu(size_t mtu, LogLimiter& log, Time now);
  /// When to call setMtu() again.
  Time deadline() const { return mtuAgain_; }
  const std::string& name() const { return name_; }
  /// The MTU that was last asked for, in bytes.
  size_t mtu() const { return mtu_; }

 private:
  HostNetwork& network_;
  std::string name_;
  DeviceConfig applied_;
  size_t mtu_ = 0;
  Time mtuAgain_ = kNever;
};

}  // namespace braid
