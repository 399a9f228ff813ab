#include "gateway/captive_portals.h"

#include <algorithm>
#include <utility>

#include "gateway/join/address_plan.h"
#include "gateway/uplinks/portal_plan.h"
#include "gateway/uplinks/working_paths.h"
#include "host/system.h"

namespace braid {

namespace {
constexpr Duration kRetry = 10s;
constexpr Duration kLook = 1s;
}  // namespace

void CaptivePortals::follow() {
  const Config& config = parts_.config;
  Time now = parts_.host.clock().now();
  bool isTun = config.tunnel.mode == TunnelOptions::Mode::kTun;
  std::vector<PortalWatch::Candidate> shut;
  followAt_ = kNever;
  if (isTun && config.portals != PortalCheck::kOff && !config.uplinks.empty()) {
    WorkingPaths working = workingPaths(parts_.tunnel, config.peers, false, now);
    if (working.doubtful) followAt_ = now + kLook;
    peerUp_ = !working.uplinks.empty() || !parts_.tunnel.peersUp().empty();
    std::set<std::string> names;
    for (const auto& [peer, uplink] : working.uplinks) names.insert(uplink);
    std::set<Address> reached;
    for (LookupWay& way : parts_.uplinks.ways(config.dns.servers)) {
      std::vector<Address> suspects = parts_.resolver.foundOver(way.uplink);
      std::erase_if(suspects, [](const Address& a) { return !isPrivate(a); });
      for (const Address& a : suspects)
        if (working.addresses.contains(a) || reached_.contains(a)) reached.insert(a);
      std::erase_if(suspects, [&](const Address& a) { return reached.contains(a); });
      if (!names.contains(way.uplink)) shut.push_back({std::move(way), std::move(suspects)});
    }
    reached_ = std::move(reached);
  }
  watch_.follow(shut, !peerUp_);
  open(now);
  announce(now);
}

void CaptivePortals::onNetworkChange() {
  open(parts_.host.clock().now());
}

void CaptivePortals::turn(Time now) {
  if (followAt_ <= now) follow();
  if (watch_.deadline() <= now) watch_.turn();
  if (watch_.takeChange() || retryAt_ <= now) open(now);
  announce(now);
}

// A failure leaves nothing open: what is open ends with the gate.
void CaptivePortals::open(Time now) {
  retryAt_ = kNever;
  PortalPlan plan = planPortals(parts_.config, parts_.monitor.table(), watch_.portals(),
                                {device_, numbers_.markMask, parts_.uplinks.exits(), peerUp_});
  told_ = std::move(plan.told);
  if (plan.rules.ways.empty()) return gate_.reset();
  if (gate_ && plan.rules == opened_) return;
  try {
    if (!gate_) gate_ = parts_.host.openPortalGate(device_);
    gate_->set(plan.rules);
    opened_ = std::move(plan.rules);
  } catch (const SystemError& e) {
    gate_.reset();
    for (auto& [uplink, text] : told_) text = "nothing is opened: " + std::string(e.what());
    parts_.log.warn(LogKind::kNetwork, now, e.what());
    retryAt_ = now + kRetry;
  }
}

void CaptivePortals::announce(Time now) {
  for (auto& [uplink, text] : watch_.takeNotes()) {
    if (auto told = told_.find(uplink); told != told_.end())
      text += "; for hosts of the LAN: " + told->second;
    parts_.log.warn(LogKind::kNetwork, now, text);
    parts_.history.onPortal(uplink, text);
  }
}

void CaptivePortals::addTo(std::vector<UplinkStatus>& uplinks) const {
  for (UplinkStatus& uplink : uplinks) {
    for (const Portal& portal : watch_.portals())
      if (portal.uplink == uplink.name) uplink.portal = portal.url;
    if (auto told = told_.find(uplink.name); told != told_.end()) uplink.portalOpen = told->second;
  }
}

}  // namespace braid
