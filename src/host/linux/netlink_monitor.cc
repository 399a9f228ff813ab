#include "host/linux/netlink_monitor.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "host/linux/device_path.h"
#include "host/system.h"

namespace braid {

namespace {

template <typename Header>
const Header* payload(const nlmsghdr& message) {
  if (message.nlmsg_len < mnl_nlmsg_size(sizeof(Header))) return nullptr;
  return static_cast<const Header*>(mnl_nlmsg_get_payload(&message));
}

template <typename Visit>
void forAttributes(const nlmsghdr& message, size_t headerBytes, Visit&& visit) {
  forEachAttribute(message, headerBytes, [&](const nlattr* a) { visit(mnl_attr_get_type(a), a); });
}

std::optional<uint32_t> u32(const nlattr* a) {
  if (mnl_attr_get_payload_len(a) < sizeof(uint32_t)) return std::nullopt;
  return mnl_attr_get_u32(a);
}

std::optional<Address> address(uint8_t family, const nlattr* a) {
  const auto* bytes = static_cast<const uint8_t*>(mnl_attr_get_payload(a));
  size_t length = mnl_attr_get_payload_len(a);
  Address out;
  if (family == AF_INET && length == 4) out.family = Address::Family::kV4;
  if (family == AF_INET6 && length == 16) out.family = Address::Family::kV6;
  if (out.family == Address::Family::kNone) return std::nullopt;
  std::memcpy(out.bytes.data(), bytes, length);
  return out;
}

// Whether the address was removed because its lifetime expired, as with a DHCP lease. The kernel
// checks a moment early and counts in seconds, hence 1. Braid's own addresses have no lifetime.
bool hasRunOut(const nlattr* cacheInfo) {
  ifa_cacheinfo info;
  if (mnl_attr_get_payload_len(cacheInfo) < sizeof info) return false;
  std::memcpy(&info, mnl_attr_get_payload(cacheInfo), sizeof info);
  return info.ifa_valid <= 1;
}

// The type of a link: "bridge", "veth" and the like; empty if the message names none.
std::string kindOf(const nlattr* linkInfo) {
  std::string kind;
  forEachNested(linkInfo, [&](const nlattr* a) {
    if (mnl_attr_get_type(a) == IFLA_INFO_KIND && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
      kind = mnl_attr_get_str(a);
  });
  return kind;
}

// A MAC address as text; empty for an address of another length.
std::string macOf(const nlattr* a) {
  if (mnl_attr_get_payload_len(a) != 6) return {};
  const auto* bytes = static_cast<const uint8_t*>(mnl_attr_get_payload(a));
  std::array<char, 18> text;
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1],
                bytes[2], bytes[3], bytes[4], bytes[5]);
  return text.data();
}

std::set<std::string> altnamesOf(const nlattr* list) {
  std::set<std::string> out;
  forEachNested(list, [&](const nlattr* a) {
    if (mnl_attr_get_type(a) == IFLA_ALT_IFNAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
      out.insert(mnl_attr_get_str(a));
  });
  return out;
}

bool operational(uint8_t state) {
  return state == IF_OPER_UP || state == IF_OPER_UNKNOWN;
}

void applyLink(const nlmsghdr& message, NetworkTable& table) {
  const auto* info = payload<ifinfomsg>(message);
  // AF_BRIDGE messages are about bridge ports, not links: a port that leaves its bridge is reported
  // as deleted.
  if (!info || info->ifi_family != AF_UNSPEC) return;
  if (message.nlmsg_type == RTM_DELLINK) return table.removeLink(info->ifi_index);
  Link& link = table.link(info->ifi_index);
  link.index = info->ifi_index;
  link.hardware = info->ifi_type;
  link.kind.clear();
  link.lower = 0;
  link.space = -1;
  uint8_t state = IF_OPER_UNKNOWN;
  uint32_t master = 0;
  std::set<std::string> altnames;
  bool isWhole = false;  // wireless events tell a few properties only
  forAttributes(message, sizeof *info, [&](uint16_t type, const nlattr* a) {
    if (type == IFLA_IFNAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
      link.name = mnl_attr_get_str(a);
    if (type == IFLA_MTU) link.mtu = u32(a).value_or(link.mtu);
    isWhole |= type == IFLA_MTU;
    if (type == IFLA_ADDRESS) link.mac = macOf(a);
    if (type == IFLA_PERM_ADDRESS) link.ownMac = macOf(a);
    if (type == IFLA_PROP_LIST) altnames = altnamesOf(a);
    if (type == IFLA_MASTER) master = u32(a).value_or(0);
    if (type == IFLA_LINKINFO) link.kind = kindOf(a);
    if (type == IFLA_LINK) link.lower = static_cast<int>(u32(a).value_or(0));
    if (type == IFLA_LINK_NETNSID) link.space = static_cast<int>(u32(a).value_or(UINT32_MAX));
    if (type == IFLA_OPERSTATE && mnl_attr_get_payload_len(a) >= 1) state = mnl_attr_get_u8(a);
  });
  if (isWhole) link.altnames = std::move(altnames);
  bool off = !(info->ifi_flags & IFF_UP);
  link.on = !off;
  if (off) ++link.switchedOff;
  if (off || (link.master != 0 && master != link.master)) table.noteLoss();
  link.master = master;
  constexpr unsigned kNeeded = IFF_UP | IFF_LOWER_UP;
  link.up = (info->ifi_flags & kNeeded) == kNeeded && operational(state);
}

void applyAddress(const nlmsghdr& message, NetworkTable& table) {
  const auto* info = payload<ifaddrmsg>(message);
  if (!info || !table.links().contains(static_cast<int>(info->ifa_index))) return;
  std::optional<Address> local, any;  // on point-to-point links IFA_ADDRESS is the peer's
  uint32_t flags = info->ifa_flags;
  bool ranOut = false;
  forAttributes(message, sizeof *info, [&](uint16_t type, const nlattr* a) {
    if (type == IFA_LOCAL) local = address(info->ifa_family, a);
    if (type == IFA_ADDRESS) any = address(info->ifa_family, a);
    if (type == IFA_FLAGS) flags = u32(a).value_or(flags);
    if (type == IFA_CACHEINFO) ranOut = hasRunOut(a);
  });
  if (!local) local = any;
  if (!local) return;
  std::set<LinkAddress>& set = table.link(static_cast<int>(info->ifa_index)).addresses;
  LinkAddress first{*local, info->ifa_prefixlen, 0, false, false, false};
  auto known = set.lower_bound(first);
  if (known != set.end() && known->address == *local && known->prefixLength == info->ifa_prefixlen)
    set.erase(known);
  if (message.nlmsg_type == RTM_DELADDR) {
    if (!ranOut) table.noteLoss();
    return;
  }
  bool tentative = (flags & IFA_F_TENTATIVE) && !(flags & IFA_F_OPTIMISTIC);
  // The same bit means IFA_F_SECONDARY in IPv4.
  bool temporary = info->ifa_family == AF_INET6 && (flags & IFA_F_TEMPORARY);
  set.insert({*local, info->ifa_prefixlen, info->ifa_scope,
              !tentative && !(flags & IFA_F_DADFAILED), (flags & IFA_F_DEPRECATED) != 0,
              temporary});
}

// Whether this is a local route for everything in a table other than the kernel's own ones. Such a
// route serves marked packets, as for transparent proxies.
bool isForMarked(const LocalNetwork& n) {
  return n.network.length == 0 && n.table != RT_TABLE_LOCAL && n.table != RT_TABLE_MAIN &&
         n.table != RT_TABLE_DEFAULT;
}

// Takes a local route into the table, from any routing table, because rules may lead there. IPv6
// anycast addresses belong to the host as well.
void applyLocalRoute(const nlmsghdr& message, const rtmsg& info, NetworkTable& table) {
  const bool isLocal = info.rtm_type == RTN_LOCAL || info.rtm_type == RTN_ANYCAST;
  const bool isNew = message.nlmsg_type == RTM_NEWROUTE;
  const bool replaces = isNew && (message.nlmsg_flags & NLM_F_REPLACE);
  if ((!isLocal && !replaces) || (info.rtm_flags & RTM_F_CLONED)) return;
  LocalNetwork local;
  local.network.length = info.rtm_dst_len;
  local.network.address.family = info.rtm_family == AF_INET    ? Address::Family::kV4
                                 : info.rtm_family == AF_INET6 ? Address::Family::kV6
                                                               : Address::Family::kNone;
  local.table = info.rtm_table;
  forAttributes(message, sizeof info, [&](uint16_t type, const nlattr* a) {
    if (type == RTA_DST) local.network.address = address(info.rtm_family, a).value_or(Address{});
    if (type == RTA_TABLE) local.table = u32(a).value_or(local.table);
    if (type == RTA_OIF) local.link = static_cast<int>(u32(a).value_or(0));
    if (type == RTA_PRIORITY) local.metric = u32(a).value_or(0);
  });
  if (local.network.address.family == Address::Family::kNone || isForMarked(local)) return;
  if (replaces) table.removeLocalNetworks(local);
  if (isLocal) isNew ? table.addLocalNetwork(local) : table.removeLocalNetwork(local);
}

void applyRoute(const nlmsghdr& message, NetworkTable& table) {
  const auto* info = payload<rtmsg>(message);
  if (!info) return;
  if (message.nlmsg_type == RTM_DELROUTE && info->rtm_protocol == kBraidProtocol) table.noteLoss();
  applyLocalRoute(message, *info, table);
  if (info->rtm_dst_len != 0 || info->rtm_type != RTN_UNICAST) return;
  if (info->rtm_family != AF_INET && info->rtm_family != AF_INET6) return;
  if (info->rtm_flags & RTM_F_CLONED) return;
  uint32_t number = info->rtm_table;
  DefaultRoute route;
  route.family = info->rtm_family == AF_INET ? Address::Family::kV4 : Address::Family::kV6;
  std::vector<DefaultRoute> hops;
  const nlattr* multipath = nullptr;
  forAttributes(message, sizeof *info, [&](uint16_t type, const nlattr* a) {
    if (type == RTA_TABLE) number = u32(a).value_or(number);
    if (type == RTA_OIF) route.link = static_cast<int>(u32(a).value_or(0));
    if (type == RTA_PRIORITY) route.metric = u32(a).value_or(0);
    if (type == RTA_GATEWAY) route.via = address(info->rtm_family, a).value_or(Address{});
    if (type == RTA_MULTIPATH) multipath = a;
  });
  if (number != RT_TABLE_MAIN) return;
  if (route.link) hops.push_back(route);
  if (multipath) {
    size_t left = mnl_attr_get_payload_len(multipath);
    const auto* at = static_cast<const uint8_t*>(mnl_attr_get_payload(multipath));
    while (left >= sizeof(rtnexthop)) {
      rtnexthop hop;
      std::memcpy(&hop, at, sizeof hop);
      size_t step = RTNH_ALIGN(hop.rtnh_len);
      if (hop.rtnh_len < sizeof hop || hop.rtnh_len > left) break;
      route.link = hop.rtnh_ifindex;
      hops.push_back(route);
      if (step >= left) break;
      at += step;
      left -= step;
    }
  }
  if (message.nlmsg_type == RTM_NEWROUTE && (message.nlmsg_flags & NLM_F_REPLACE)) {
    table.removeDefaultRoutes(route.family, route.metric);
  }
  for (const DefaultRoute& hop : hops) {
    message.nlmsg_type == RTM_NEWROUTE ? table.addDefaultRoute(hop) : table.removeDefaultRoute(hop);
  }
}

}  // namespace

namespace {

// Whether the message says that forwarding of the whole host was switched off.
bool endsForwarding(const nlmsghdr& message) {
  if (message.nlmsg_len < mnl_nlmsg_size(sizeof(netconfmsg))) return false;
  bool all = false, off = false;
  forEachAttribute(message, sizeof(netconfmsg), [&](const nlattr* a) {
    if (mnl_attr_get_payload_len(a) < sizeof(uint32_t)) return;
    uint16_t type = mnl_attr_get_type(a);
    if (type == NETCONFA_IFINDEX)
      all = static_cast<int>(mnl_attr_get_u32(a)) == NETCONFA_IFINDEX_ALL;
    if (type == NETCONFA_FORWARDING) off = mnl_attr_get_u32(a) == 0;
  });
  return all && off;
}

}  // namespace

void applyNetlink(const nlmsghdr& message, NetworkTable& table) {
  switch (message.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return applyLink(message, table);
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return applyAddress(message, table);
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      return applyRoute(message, table);
    case RTM_DELRULE:
      return table.noteLoss();
    case RTM_NEWNETCONF:
      if (endsForwarding(message)) table.noteLoss();
      return;
    default:
      return;
  }
}

namespace {

constexpr uint32_t kGroups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                             RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_RULE |
                             1U << (RTNLGRP_IPV6_RULE - 1) | 1U << (RTNLGRP_IPV4_NETCONF - 1) |
                             1U << (RTNLGRP_IPV6_NETCONF - 1);
// The most batches of notifications per call, so that a storm of route changes does not block the
// event loop.
constexpr int kBatchesPerCall = 16;
// Upper bound on the batches in the kernel's queue when it is full: each takes at least half a
// kilobyte of it.
constexpr int kMostBatches = 8192;
// How often a dump is tried when something changed during it, or the kernel had no memory for it.
constexpr int kDumpTries = 3;
// Pause between two readings of everything, so that a storm of changes does not keep the daemon
// from its packets. It doubles as long as readings follow each other as soon as they may, because
// changes are missed again and again or no reading succeeds.
constexpr Duration kPause = 1s, kLongestPause = 32s;

// Whether routes may have disappeared without a notification: the kernel does not announce IPv4
// routes that it removes together with a link that is switched off, or with their source address.
bool mayLoseRoutesSilently(const NetworkChange& c) {
  using Kind = NetworkChange::Kind;
  return c.kind == Kind::kLinkDown || c.kind == Kind::kLinkUp || c.kind == Kind::kAddressGone;
}

// Calls read() up to kDumpTries times until nothing changes during it. read() must start from
// scratch each time.
template <typename Read>
int untilWhole(Read&& read) {
  int error = EINTR;
  for (int i = 0; (error == EINTR || error == ENOBUFS || error == ENOMEM) && i < kDumpTries; ++i)
    error = read();
  return error;
}

}  // namespace

// Notifications are subscribed to before the dump, so a change during the dump is seen in both, and
// applied twice, which is harmless.
NetlinkMonitor::NetlinkMonitor(int receiveBytes)
    : events_(kGroups, receiveBytes), requests_(0), pause_(kPause) {
  int error = readAll(table_);
  if (error == EINTR) readAt_ = earliest_;
  if (error != 0 && error != EINTR)
    throw SystemError(error,
                      std::string("cannot list the host's network: ") + std::strerror(error));
  findPaths();
}

int NetlinkMonitor::readRoutes(NetworkTable& table) {
  return untilWhole([&] {
    table.forgetRoutes();
    int error = 0;
    for (uint8_t family : {AF_INET, AF_INET6}) {
      auto apply = [&](const nlmsghdr& m) { applyNetlink(m, table); };
      int trouble = requests_.dumpOnce(RTM_GETROUTE, family, apply).error;
      if (trouble != 0) error = trouble;
    }
    return error;
  });
}

int NetlinkMonitor::readAll(NetworkTable& table) {
  int error = untilWhole([&] {
    table = {};
    auto apply = [&](const nlmsghdr& m) { applyNetlink(m, table); };
    int links = requests_.dumpOnce(RTM_GETLINK, AF_UNSPEC, apply).error;
    int addresses = requests_.dumpOnce(RTM_GETADDR, AF_UNSPEC, apply).error;
    return links ? links : addresses;
  });
  int routes = readRoutes(table);
  return error ? error : routes;
}

// Applies the notifications that wait. True: the kernel had to drop some.
bool NetlinkMonitor::hear() {
  bool overrun = false;
  for (int i = 0; i < (overrun ? kMostBatches : kBatchesPerCall); ++i) {
    NetlinkSocket::Heard heard = events_.hear([&](const nlmsghdr& m) { applyNetlink(m, table_); });
    if (heard == NetlinkSocket::Heard::kNothing) break;
    if (heard != NetlinkSocket::Heard::kOverrun) continue;
    ++overruns_;
    overrun = true;
  }
  return overrun;
}

// Reads everything again. After an overrun all waiting notifications must have been read first:
// they are older than what this reads, and the kernel drops new ones until they are read.
void NetlinkMonitor::readAnew(Time now) {
  NetworkTable fresh;
  bool whole = readAll(fresh) == 0;
  bool calm = now >= earliest_ + pause_;
  pause_ = calm ? kPause : std::min<Duration>(2 * pause_, kLongestPause);
  earliest_ = now + pause_;
  readAt_ = whole ? kNever : earliest_;
  if (!whole) return;
  fresh.continueFrom(table_);
  table_ = std::move(fresh);
  looked_.clear();
}

// The kernel's messages do not say where a device is plugged in. A name that is out of date,
// because the interface was renamed since, finds nothing; the message about that follows.
void NetlinkMonitor::findPaths() {
  for (const auto& [index, known] : table_.links()) {
    std::string& looked = looked_[index];
    if (!known.path.empty() || known.name == looked) continue;
    looked = known.name;
    std::string path = devicePathOf(known.name);
    if (!path.empty()) table_.link(index).path = path;
  }
  std::erase_if(looked_, [&](const auto& l) { return !table_.links().contains(l.first); });
}

std::vector<NetworkChange> NetlinkMonitor::process(Time now) {
  NetworkTable before = table_;
  if (hear()) readAt_ = std::min(readAt_, std::max(now, earliest_));
  if (readAt_ <= now) readAnew(now);
  std::vector<NetworkChange> changes = table_.changesSince(before);
  if (std::any_of(changes.begin(), changes.end(), mayLoseRoutesSilently)) {
    NetworkTable next = table_;
    if (readRoutes(next) == 0) {
      table_ = std::move(next);
    } else {
      readAt_ = std::min(readAt_, std::max(now + kPause, earliest_));
    }
    changes = table_.changesSince(before);
  }
  findPaths();
  return changes;
}

}  // namespace braid
