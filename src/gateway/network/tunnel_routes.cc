#include "gateway/network/tunnel_routes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/network/network_reconciler.h"
#include "host/system.h"

namespace braid {

namespace {

template <typename T>
bool holdsItem(const std::vector<T>& list, const T& item) {
  return std::ranges::find(list, item) != list.end();
}

/// The kernel keeps one route for each of these.
bool sameKey(const RouteSpec& a, const RouteSpec& b) {
  return a.destination == b.destination && a.table == b.table && a.metric == b.metric;
}

/// Whether an error says that the machine has no IPv6, so that there is nothing to guard.
bool lacksFamily(const SystemError& e) {
  return e.code() == EAFNOSUPPORT || e.code() == EOPNOTSUPP || e.code() == EACCES ||
         e.code() == ENODEV;
}

/// Adds a part of a guard; one for IPv6 is left out on a machine without that.
template <typename Add>
void addGuarding(bool v6, Add&& add) {
  try {
    add();
  } catch (const SystemError& e) {
    if (!v6 || !lacksFamily(e)) throw;
  }
}

void add(HostNetwork& network, const RouteSpec& route) {
  if (!route.stays) return network.addRoute(route);
  addGuarding(route.destination.address.isV6(), [&] { network.addRoute(route); });
}

void add(HostNetwork& network, const RuleSpec& rule) {
  if (!rule.stays) return network.addRule(rule);
  addGuarding(rule.family == Address::Family::kV6, [&] { network.addRule(rule); });
}

void remove(HostNetwork& network, const RouteSpec& route) {
  network.removeRoute(route);
}
void remove(HostNetwork& network, const RuleSpec& rule) {
  network.removeRule(rule);
}

template <typename T>
void addNew(HostNetwork& network, Transaction& all, const std::vector<T>& before,
            const std::vector<T>& next) {
  for (const T& item : next)
    if (!holdsItem(before, item))
      all.step([&] { add(network, item); }, [&network, item] { remove(network, item); });
}

/// Logs an error instead of throwing: the change was committed, and the remaining steps must still
/// be done.
template <typename T>
void removeMissing(HostNetwork& network, const std::vector<T>& before, const std::vector<T>& next) {
  for (const T& item : before) {
    if (holdsItem(next, item)) continue;
    try {
      remove(network, item);
    } catch (const SystemError& e) {
      spdlog::warn("{}", e.what());
    }
  }
}

/// Whether the guard of another gateway is there, which needs the pass rule, too.
bool isPassShared(HostNetwork& network, const std::string& device, const HostNumbers& numbers) {
  return network.hasOtherRule(numbers.guardRule(), HostNumbers::guardTable(device));
}

void removeGuard(HostNetwork& network, const std::string& device, const HostNumbers& numbers) {
  removeGuardRules(network, device, numbers);
  network.removeStaleRoutes(HostNumbers::guardTable(device));
}

}  // namespace

void TunnelRoutes::removeStale(const RoutePlan& next) {
  HostNetwork& network = host_.network();
  network.removeStaleRules(numbers_.exceptionRule(), kMainTable);
  for (bool isWide : {false, true})
    network.removeStaleRules(numbers_.tunnelRule(isWide), numbers_.tunnelTable());
  network.removeStaleRoutes(numbers_.tunnelTable());
  if (next.filter.guard) {
    network.removeStaleRoutes(HostNumbers::guardTable(device_));
  } else {
    removeGuard(network, device_, numbers_);
  }
}

void TunnelRoutes::removeOld(const RoutePlan& next) {
  HostNetwork& network = host_.network();
  std::vector<RuleSpec> rules = applied_.rules;
  std::erase_if(rules, [&](const RuleSpec& rule) {
    return rule.priority == numbers_.passRule() && isPassShared(network, device_, numbers_);
  });
  removeMissing(network, rules, next.rules);
  removeMissing(network, applied_.routes, next.routes);
}

// Routes that another one with the same key replaces are removed first. The rules come after the
// routes that they lead to, and old things are removed last, so that no packet takes another way in
// between.
void TunnelRoutes::apply(RoutePlan next) {
  if (begun_ && next == applied_) return;
  HostNetwork& network = host_.network();
  if (!begun_) removeStale(next);
  Transaction all;
  for (const RouteSpec& old : applied_.routes) {
    bool isReplaced =
        !holdsItem(next.routes, old) &&
        std::ranges::any_of(next.routes, [&](const auto& r) { return sameKey(r, old); });
    if (isReplaced)
      all.step([&] { network.removeRoute(old); }, [&network, old] { network.addRoute(old); });
  }
  addNew(network, all, applied_.routes, next.routes);
  addNew(network, all, applied_.rules, next.rules);
  if (!begun_ || !(next.filter == applied_.filter)) setFilter(next.filter);
  all.commit();
  removeOld(next);
  applied_ = std::move(next);
  begun_ = true;
}

// Without a packet filter replies may go into the tunnel. A guard is a promise.
void TunnelRoutes::setFilter(const FilterRules& next) {
  try {
    if (!filter_) filter_ = host_.openFilter(device_);
    filter_->set(next);
  } catch (const SystemError& e) {
    if (next.guard || applied_.filter.guard) throw;
    if (!next.isEmpty()) spdlog::warn("{}", e.what());
  }
}

void TunnelRoutes::keep(Time now) {
  deadline_ = applied_.filter.guard ? now + kLook : kNever;
  if (!filter_ || filter_->isIntact()) return;
  try {
    filter_->set(applied_.filter);
    log_.warn(LogKind::kNetwork, now,
              "was gone from the host, and is put back: the guard's packet filter");
  } catch (const SystemError& e) {
    log_.warn(LogKind::kNetwork, now, e.what());
  }
}

void applyGuard(HostNetwork& network, PacketFilter& filter, const std::string& device,
                const RoutePlan& guard) {
  filter.set(guard.filter);
  network.removeStaleRoutes(HostNumbers::guardTable(device));
  for (const RouteSpec& route : guard.routes) add(network, route);
  for (const RuleSpec& rule : guard.rules) add(network, rule);
}

void removeGuardRules(HostNetwork& network, const std::string& device, const HostNumbers& before) {
  network.removeStaleRules(before.guardRule(), HostNumbers::guardTable(device));
  if (!isPassShared(network, device, before))
    network.removeStaleRules(before.passRule(), kMainTable);
}

void releaseGuard(HostNetwork& network, PacketFilter& filter, const std::string& device,
                  const HostNumbers& numbers) {
  removeGuard(network, device, numbers);
  filter.set({});
}

}  // namespace braid
