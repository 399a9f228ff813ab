#include "gateway/proxy/intercept_policy.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "gateway/config/address_ranges.h"
#include "host/system.h"

namespace braid {

namespace {

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

namespace {

// Chosen: a host with more interfaces is not a router of a few LANs, but has a container behind
// each.
constexpr size_t kMostApproaches = 256;
// Chosen: names of interfaces that are gone are remembered up to this number of public ones.
constexpr size_t kMostPublic = 64;

// The interfaces that are not outside, each with a host of its network, for each address family.
std::vector<StreamApproach> approachesOf(const NetworkTable& table,
                                         const std::set<std::string>& outside,
                                         const std::string& device) {
  std::vector<StreamApproach> out;
  for (const auto& [index, link] : table.links()) {
    if (link.name == "lo" || link.name == device || outside.contains(link.name)) continue;
    bool has[2] = {false, false};
    for (const LinkAddress& a : link.addresses) {
      bool v6 = a.address.isV6(), isHost = a.prefixLength + 1u >= a.address.bits();
      if (has[v6] || isHost || a.scope != 0 || out.size() == kMostApproaches) continue;
      has[v6] = true;
      Address neighbour = a.address;
      neighbour.bytes[neighbour.view().size() - 1] ^= 3;
      out.push_back({link.name, static_cast<uint32_t>(index), neighbour});
    }
  }
  return out;
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
  wanted_.waits = config.streams.connect == StreamsConfig::Connect::kFirst && host_.canGiveBack();
  if (!wanted_.waits && config.streams.connect == StreamsConfig::Connect::kFirst)
    spdlog::warn("streams.connect: first needs CAP_NET_RAW; connections are accepted at once");
  std::vector<Prefix> prefixes;
  for (const PeerConfig& peer : config.peers)
    prefixes.insert(prefixes.end(), peer.options.prefixes.begin(), peer.options.prefixes.end());
  peers_ = rangesOf(std::move(prefixes));
  // A single address usually belongs to the gateway at the other end. Its own services are not
  // hosts behind it, and streams to them are refused there.
  std::erase_if(peers_, [](const AddressRange& range) { return range.first == range.last; });
  const std::vector<Prefix>& clients =
      config.streams.from.empty() ? config.device.networks : config.streams.from;
  wanted_.sources = joined(rangesOf(clients));
  listens_ = !config.listen.empty();
  listenedAt_.clear();
  for (const Endpoint& end : config.listen) listenedAt_.push_back(end.address);
  public_.clear();
  again_ = Time::min();
  isNewApproach_ = true;
}

void InterceptPolicy::setUplinks(const std::vector<std::string>& interfaces) {
  uplinks_ = {interfaces.begin(), interfaces.end()};
  isNewApproach_ = true;
}

// A default route that is gone for a moment, as during the renewal of a lease, does not make an
// interface an inside one. A new interface is the one that is gone if it has its name.
void InterceptPolicy::followPublic(const NetworkTable& table) {
  if (!listens_) return public_.clear();
  auto isGone = [&](int index) { return !table.links().contains(index); };
  auto isKnown = [&](int index, const Link& link) {
    return std::ranges::any_of(public_, [&](const auto& known) {
      return known.second == index || (known.first == link.name && isGone(known.second));
    });
  };
  auto isPublic = [&](int index, const Link& link) {
    auto isHere = [&](const LinkAddress& a) {
      return std::ranges::find(listenedAt_, a.address) != listenedAt_.end();
    };
    return isKnown(index, link) || table.hasDefaultRoute(index, Address::Family::kV4) ||
           table.hasDefaultRoute(index, Address::Family::kV6) ||
           std::ranges::any_of(link.addresses, isHere);
  };
  std::map<std::string, int> next;
  for (const auto& [index, link] : table.links())
    if (isPublic(index, link)) next.emplace(link.name, index);
  for (const auto& [name, index] : public_)
    if (isGone(index) && next.size() < kMostPublic) next.emplace(name, index);
  public_ = std::move(next);
}

// Goes by interface names, so that the rules already cover an interface that appears later. A
// packet that enters by a member of a VRF enters by the VRF's interface as well.
void InterceptPolicy::follow(const NetworkTable& table) {
  followPublic(table);
  std::set<std::string> outside = uplinks_;
  for (const auto& [name, index] : public_) outside.insert(name);
  for (const auto& [index, link] : table.links()) {
    if (!uplinks_.contains(link.name) && !public_.contains(link.name)) continue;
    auto master = table.links().find(static_cast<int>(link.master));
    if (master != table.links().end()) outside.insert(master->second.name);
  }
  outside.erase(wanted_.device);
  wanted_.outside.assign(outside.begin(), outside.end());
  std::vector<StreamApproach> approaches = approachesOf(table, outside, wanted_.device);
  isNewApproach_ |= approaches != approaches_;
  approaches_ = std::move(approaches);
}

void InterceptPolicy::removeStale(HostNetwork& network, const HostNumbers& numbers) {
  network.removeStaleRules(numbers.interceptedRule(), numbers.interceptedTable());
}

// Makes the kernel treat all marked packets as its own, whatever their destination.
void InterceptPolicy::steer() {
  if (steered_) return;
  for (Address::Family family : {Address::Family::kV4, Address::Family::kV6}) {
    LocalDelivery delivery = localDelivery(family, wanted_.device, numbers_);
    try {
      network_.addRoute(delivery.route);
      network_.addRule(delivery.rule);
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

void InterceptPolicy::listBarred(Time now) {
  try {
    auto found = host_.barriers(wanted_, approaches_, std::exchange(isNewApproach_, false));
    if (!found || *found == wanted_.barred) return;
    wanted_.barred = *std::move(found);
  } catch (const SystemError& e) {
    log_.warn(LogKind::kNetwork, now, std::string("streams: ") + e.what());
    return;
  }
  for (const StreamBarrier& barrier : wanted_.barred)
    log_.warn(LogKind::kNetwork, now,
              std::string("streams: ") + (barrier.v6 ? "IPv6" : "IPv4") + " connections from " +
                  barrier.interface + " stay packets: " + barrier.by +
                  " would drop them ('braidctl firewall show' has more)");
}

void InterceptPolicy::update(bool room, Time now) {
  deadline_ = now + kLook;
  if (now < again_) return;
  listAvoided(now);
  listBarred(now);
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
  try {
    host_.stopIntercepting();
  } catch (const SystemError& e) {
    spdlog::warn("{}", e.what());  // the rest of the gateway must end all the same
  }
  made_ = open_ = false;
  deadline_ = kNever;
}

}  // namespace braid
