#include "gateway/proxy/intercept_policy.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "gateway/config/address_ranges.h"
#include "host/system.h"

namespace braid {

namespace {

Prefix everything(Address::Family family) {
  Address any;
  any.family = family;
  return {any, 0};
}

// An address of the range that a host may have. The first one may be a network's own address.
Address inside(const AddressRange& range) {
  Address a = range.first;
  if (range.first != range.last)
    // A range of several addresses begins with an even one, or after it.
    ++a.bytes[a.view().size() - 1];
  return a <= range.last && range.first <= a ? a : range.first;
}

// `ranges`: sorted and disjoint.
bool isIn(const std::vector<AddressRange>& ranges, const Address& address) {
  auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](const Address& a, const AddressRange& range) { return a < range.first; });
  return behind != ranges.begin() && address <= std::prev(behind)->last;
}

}  // namespace

void InterceptPolicy::configure(const Config& config, const std::string& device,
                                const HostNumbers& numbers) {
  numbers_ = numbers;
  wanted_.device = device;
  wanted_.mark = numbers.interceptedMark();
  wanted_.markMask = numbers.markMask;
  wanted_.match = config.streams.match;
  wanted_.exclude = config.streams.exclude;
  std::vector<Prefix> prefixes;
  for (const PeerConfig& peer : config.peers)
    prefixes.insert(prefixes.end(), peer.options.prefixes.begin(), peer.options.prefixes.end());
  peers_ = rangesOf(std::move(prefixes));
  // A single address usually belongs to the gateway at the other end. Its own services are not
  // hosts behind it, and streams to them are refused there.
  std::erase_if(peers_, [](const AddressRange& range) { return range.first == range.last; });
  uplinks_.clear();
  for (const UplinkConfig& uplink : config.uplinks) uplinks_.insert(uplink.interface);
  listens_ = !config.listen.empty();
  listenedAt_.clear();
  for (const Endpoint& end : config.listen) listenedAt_.push_back(end.address);
  public_.clear();
  again_ = Time::min();
}

// Goes by interface names, so that the rules already cover an interface that appears later. A
// packet that enters by a member of a VRF enters by the VRF's interface as well. A default route
// that is gone for a moment, as during the renewal of a lease, does not make an interface an inside
// one.
void InterceptPolicy::follow(const NetworkTable& table) {
  auto isPublic = [&](int index, const Link& link) {
    auto isHere = [&](const LinkAddress& a) {
      return std::ranges::find(listenedAt_, a.address) != listenedAt_.end();
    };
    return public_.contains(link.name) || table.hasDefaultRoute(index, Address::Family::kV4) ||
           table.hasDefaultRoute(index, Address::Family::kV6) ||
           std::ranges::any_of(link.addresses, isHere);
  };
  std::set<std::string> nowPublic, outside = uplinks_;
  for (const auto& [index, link] : table.links()) {
    if (listens_ && isPublic(index, link)) nowPublic.insert(link.name);
    if (!uplinks_.contains(link.name) && !nowPublic.contains(link.name)) continue;
    outside.insert(link.name);
    auto master = table.links().find(static_cast<int>(link.master));
    if (master != table.links().end()) outside.insert(master->second.name);
  }
  public_ = std::move(nowPublic);
  outside.erase(wanted_.device);
  wanted_.outside.assign(outside.begin(), outside.end());
}

void InterceptPolicy::removeStale(HostNetwork& network, const HostNumbers& numbers) {
  network.removeStaleRules(numbers.interceptedRule(), numbers.interceptedTable());
}

// Makes the kernel treat all marked packets as its own, whatever their destination.
void InterceptPolicy::steer() {
  if (steered_) return;
  removeStale(network_, numbers_);
  for (Address::Family family : {Address::Family::kV4, Address::Family::kV6}) {
    RouteSpec route;
    route.destination = everything(family);
    route.device = wanted_.device;
    route.table = numbers_.interceptedTable();
    route.kind = RouteSpec::Kind::kLocal;
    RuleSpec rule;
    rule.family = family;
    rule.priority = numbers_.interceptedRule();
    rule.table = route.table;
    rule.mark = wanted_.mark;
    rule.markMask = wanted_.markMask;
    try {
      network_.addRoute(route);
      network_.addRule(rule);
    } catch (const SystemError& e) {
      if (family == Address::Family::kV4) throw;
      spdlog::warn("streams: only for IPv4: {}", e.what());  // a machine without IPv6
    }
  }
  steered_ = true;
}

void InterceptPolicy::avoid(const StreamPair& pair, Time now) {
  std::erase_if(avoided_, [&](const Avoided& a) { return a.pair == pair; });
  if (avoided_.size() >= kMostAvoided) avoided_.pop_front();
  avoided_.push_back({pair, now + kAvoid});
  deadline_ = std::min(deadline_, std::max(now, lastChange_ + kLook));
}

void InterceptPolicy::listAvoided(Time now) {
  while (!avoided_.empty() && avoided_.front().until <= now) avoided_.pop_front();
  wanted_.avoid.clear();
  for (const Avoided& a : avoided_) wanted_.avoid.push_back(a.pair);
}

void InterceptPolicy::update(bool room, Time now) {
  deadline_ = now + kLook;
  if (now < again_) return;
  listAvoided(now);
  // A full peer is removed from the rules at once. A peer is added at most once per kLook.
  // Otherwise two peers that fill and empty would change the rules with each connection.
  const bool mayAdd = now >= lastAdd_ + kLook;
  std::vector<AddressRange> able;
  for (const AddressRange& range : peers_) {
    const bool isNew = !isIn(applied_.destinations, range.first);
    if ((isNew && !mayAdd) || !lanes_.canOpen(inside(range))) continue;
    able.push_back(range);
    if (isNew) lastAdd_ = now;
  }
  wanted_.destinations = joined(able);
  bool takeNew = room && !wanted_.destinations.empty();
  if (made_ && takeNew == open_ && wanted_ == applied_) return;
  if (open_ && !room) ++lifts_;
  apply(takeNew, now);
}

void InterceptPolicy::apply(bool takeNew, Time now) {
  lastChange_ = now;
  try {
    steer();
    host_.intercept(wanted_, takeNew);
    applied_ = wanted_;
    made_ = true;
    if (open_ != takeNew)
      spdlog::info("streams: new connections {}", takeNew ? "are taken over" : "stay packets");
    open_ = takeNew;
  } catch (const SystemError& e) {
    log_.warn(LogKind::kNetwork, now, std::string(e.what()) + "; all connections stay packets");
    again_ = now + kRetry;
  }
}

bool InterceptPolicy::takes(const Address& destination) const {
  return open_ && isIn(applied_.destinations, destination);
}

void InterceptPolicy::stop() {
  host_.stopIntercepting();
  made_ = open_ = false;
  deadline_ = kNever;
}

}  // namespace braid
