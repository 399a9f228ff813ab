#include "gateway/network/tunnel_steering.h"

#include <algorithm>
#include <utility>

#include "gateway/network/route_plan.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr Duration kRetry = 1s;

std::vector<std::string> knownInterfaces(const Config& config, const NetworkTable& host) {
  std::vector<std::string> out = interfacesOf(config.uplinks, host);
  std::erase(out, "");
  return out;
}

Event eventOf(bool carries) {
  return {carries ? Event::Kind::kRouted : Event::Kind::kDirect,
          {},
          carries ? "packets to device.routes go through the tunnel"
                  : "no peer answers: packets to device.routes leave by the host's own routes, in "
                    "clear"};
}

}  // namespace

TunnelSteering::TunnelSteering(Host& host, const NetworkMonitor& monitor, Tunnel& tunnel,
                               const Config& config, LogLimiter& log, const std::string& device,
                               const HostNumbers& numbers, std::function<Needs()> needs)
    : host_(host),
      monitor_(monitor),
      tunnel_(tunnel),
      config_(config),
      log_(log),
      numbers_(numbers),
      needs_(std::move(needs)),
      device_(host.network(), device),
      routes_(host, log, device, numbers),
      nat_(host, device, numbers),
      reconciler_(host.network(), log) {}

void TunnelSteering::apply(const Config& next) {
  std::vector<std::string> names = knownInterfaces(next, monitor_.table());
  try {
    nat_.configure(next, names);
    applyDevice(next);
  } catch (const SystemError&) {
    bool isFirst = &next == &config_;
    isFirst ? nat_.stop() : nat_.configureOrWarn(config_, names_);
    throw;
  }
  names_ = std::move(names);
}

void TunnelSteering::applyDevice(const Config& next) {
  device_.apply(next.device);
  try {
    applyRoutes(next);
  } catch (const SystemError&) {
    device_.applyOrWarn(config_.device);
    throw;
  }
  tellOwnNetworks(next);
}

void TunnelSteering::applyRoutes(const Config& next) {
  Needs needs = needs_();
  RouteSituation situation{device_.name(), numbers_, watch_.carries(), std::move(needs.replies),
                           needs.asksHere};
  routes_.apply(planRoutes(next, monitor_.table(), situation));
  routes_.keep(host_.clock().now());
}

void TunnelSteering::tellOwnNetworks(const Config& next) {
  std::vector<Prefix> own = ownNetworks(next, monitor_.table(), device_.name());
  if (own == std::exchange(ownNetworks_, own)) return;
  tunnel_.setLocalNetworks(std::move(own));
}

void TunnelSteering::follow() {
  Time now = host_.clock().now();
  retryAt_ = kNever;
  try {
    applyRoutes(config_);
  } catch (const SystemError& e) {
    log_.warn(LogKind::kNetwork, now, e.what());
    retryAt_ = now + kRetry;
  }
}

// An interface may get another name, and an uplink another interface, while the daemon runs.
bool TunnelSteering::onNetworkChange(bool isLoss, Time now) {
  if (isLoss) reconciler_.suspect(now);
  std::vector<std::string> names = knownInterfaces(config_, monitor_.table());
  bool isNamedAnew = names != std::exchange(names_, names);
  if (isNamedAnew) nat_.configureOrWarn(config_, names_);
  tellOwnNetworks(config_);
  follow();
  return isNamedAnew;
}

std::optional<Event> TunnelSteering::turn(Time now) {
  if (reconciler_.deadline() <= now) {
    reconciler_.onTimer(now);
    nat_.note();
  }
  if (routes_.deadline() <= now) routes_.keep(now);
  if (retryAt_ <= now) follow();
  bool before = watch_.carries();
  watch_.onChange(tunnel_.answers(), now);
  watch_.onTimer(now);
  if (watch_.carries() == before) return std::nullopt;
  follow();
  if (config_.device.whenDown != DeviceConfig::WhenDown::kDirect) return std::nullopt;
  if (!watch_.carries()) nat_.forgetTunnelled();
  return eventOf(watch_.carries());
}

Time TunnelSteering::deadline() const {
  return std::min({reconciler_.deadline(), routes_.deadline(), retryAt_, watch_.deadline(),
                   device_.deadline()});
}

void TunnelSteering::followMtu(Time now) {
  device_.setMtu(deviceMtu(config_, tunnel_.innerMtu()), log_, now);
}

void TunnelSteering::stop() {
  nat_.stop();
  routes_.stop();
}

}  // namespace braid
