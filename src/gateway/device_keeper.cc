#include "gateway/device_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "gateway/transaction.h"
#include "host/system_error.h"

namespace braid {

namespace {

// Below this the kernel takes IPv6 off an interface (RFC 8200 section 5).
constexpr size_t kSmallestIpv6Mtu = 1280;
// What a LAN's hosts use (RFC 894). A bridge drops larger frames than its port takes without a word, the
// tunnel answers or cuts them: a TAP device takes whole LAN frames.
constexpr size_t kEthernetMtu = 1500;
constexpr size_t kEthernetHeader = 14;
constexpr Duration kMtuPause = 1s;
// Of IPv6. With 0 the kernel takes 1024, which is also that of router advertisements.
constexpr uint32_t kBestMetricV6 = 1;
// Bits of the longest prefix that stands for everything: 2000::/3 is all of the internet (RFC 4291 section 2.4). A longer
// one may be that of a LAN at this host, which goes first.
constexpr uint8_t kEverythingV6 = 3;

template <typename T>
bool has(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// It is too late for a way back: what comes next must still be done.
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

RouteSpec deviceRoute(const Prefix& destination, const std::string& device) {
  RouteSpec r;
  r.destination = destination;
  r.device = device;
  r.metric = destination.address.isV6() && destination.length <= kEverythingV6 ? kBestMetricV6 : 0;
  return r;
}

// New things first, so that an error leaves what was there; then the old ones go.
void DeviceKeeper::apply(const DeviceConfig& next) {
  Transaction all;
  for (const InterfaceAddress& a : next.addresses) {
    if (has(applied_.addresses, a)) continue;
    all.step([&] { network_.addAddress(name_, a); }, [=, this] { network_.removeAddress(name_, a); });
  }
  network_.setLinkUp(name_);
  for (const Prefix& p : next.routes) {
    if (has(applied_.routes, p)) continue;
    RouteSpec route = deviceRoute(p, name_);
    all.step([&] { network_.addRoute(route); }, [=, this] { network_.removeRoute(route); });
  }
  if (!next.bridge.empty()) network_.setMaster(name_, next.bridge);
  all.commit();
  for (const Prefix& p : applied_.routes) {
    if (!has(next.routes, p)) orWarn([&] { network_.removeRoute(deviceRoute(p, name_)); });
  }
  for (const InterfaceAddress& a : applied_.addresses) {
    if (!has(next.addresses, a)) orWarn([&] { network_.removeAddress(name_, a); });
  }
  applied_ = next;
}

void DeviceKeeper::setMtu(size_t mtu, LogLimiter& log, Time now) {
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
