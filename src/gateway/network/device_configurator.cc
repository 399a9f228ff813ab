#include "gateway/network/device_configurator.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "gateway/network/network_reconciler.h"
#include "host/system.h"

namespace braid {

namespace {

// Below this MTU the kernel removes IPv6 from an interface (RFC 8200 section 5).
constexpr size_t kSmallestIpv6Mtu = 1280;
// MTU of the hosts of a LAN (RFC 894). A bridge silently drops frames that are larger than its
// port's MTU, whereas the tunnel answers them with an ICMP error or fragments them. So a TAP device
// takes whole LAN frames.
constexpr size_t kEthernetMtu = 1500;
constexpr size_t kEthernetHeader = 14;
constexpr Duration kMtuPause = 1s;

template <typename T>
bool has(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// Logs an error instead of throwing: the change was committed, and the remaining steps must still
/// be done.
template <typename F>
void orWarn(F&& takeAway) {
  try {
    takeAway();
  } catch (const SystemError& e) {
    spdlog::warn("{}", e.what());
  }
}

}  // namespace

size_t deviceMtu(const Config& config, size_t innerMtu) {
  if (config.device.mtu) return config.device.mtu;
  if (config.tunnel.mode == TunnelOptions::Mode::kTap)
    return std::max(innerMtu, kEthernetMtu + kEthernetHeader) - kEthernetHeader;
  return std::max(innerMtu, kSmallestIpv6Mtu);
}

// Adds new things first, so that an error leaves the earlier settings, and then removes the old
// ones.
void DeviceConfigurator::apply(const DeviceConfig& next) {
  Transaction all;
  for (const InterfaceAddress& a : next.addresses) {
    if (has(applied_.addresses, a)) continue;
    all.step([&] { network_.addAddress(name_, a); },
             [=, this] { network_.removeAddress(name_, a); });
  }
  network_.setLinkUp(name_);
  if (!next.bridge.empty()) network_.setMaster(name_, next.bridge);
  all.commit();
  for (const InterfaceAddress& a : applied_.addresses) {
    if (!has(next.addresses, a)) orWarn([&] { network_.removeAddress(name_, a); });
  }
  applied_ = next;
}

void DeviceConfigurator::applyOrWarn(const DeviceConfig& before) {
  orWarn([&] { apply(before); });
}

void DeviceConfigurator::setMtu(size_t mtu, LogLimiter& log, Time now) {
  if (mtu == mtu_ && now < mtuAgain_) return;
  mtu_ = mtu;
  mtuAgain_ = kNever;
  try {
    network_.setMtu(name_, static_cast<uint32_t>(mtu));
    spdlog::debug("{} has MTU {}", name_, mtu);
  } catch (const SystemError& e) {
    log.warn(LogKind::kDevice, now, e.what());
    mtuAgain_ = now + kMtuPause;
  }
}

}  // namespace braid
