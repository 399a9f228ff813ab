#include "host/linux/netlink_monitor.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

#include "host/linux/netlink_apply.h"

namespace braid {

namespace {

constexpr uint32_t kGroups =
    RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
// Batches of notifications per call, so that a storm of route changes does not hold the event loop.
constexpr int kBatchesPerCall = 16;

// The kernel does not announce the IPv4 routes that go with a link that is switched off or with their source
// address.
bool mayLoseRoutesSilently(const NetworkChange& c) {
  using Kind = NetworkChange::Kind;
  return c.kind == Kind::kLinkDown || c.kind == Kind::kLinkUp || c.kind == Kind::kAddressGone;
}

}  // namespace

// Listening starts before the dump: what changes in between is heard afterwards and applied twice.
NetlinkMonitor::NetlinkMonitor() : events_(kGroups), requests_(0) {
  table_ = dumpAll();
}

void NetlinkMonitor::dumpRoutes(NetworkTable& table) {
  table.forgetRoutes();
  for (uint8_t family : {AF_INET, AF_INET6}) {
    requests_.dump(RTM_GETROUTE, family, [&](const nlmsghdr& m) { applyNetlink(m, table); });
  }
}

NetworkTable NetlinkMonitor::dumpAll() {
  NetworkTable table;
  requests_.dump(RTM_GETLINK, AF_UNSPEC, [&](const nlmsghdr& m) { applyNetlink(m, table); });
  requests_.dump(RTM_GETADDR, AF_UNSPEC, [&](const nlmsghdr& m) { applyNetlink(m, table); });
  dumpRoutes(table);
  return table;
}

std::vector<NetworkChange> NetlinkMonitor::process() {
  NetworkTable before = table_;
  for (int i = 0; i < kBatchesPerCall; ++i) {
    NetlinkSocket::Heard heard = events_.hear([&](const nlmsghdr& m) { applyNetlink(m, table_); });
    if (heard == NetlinkSocket::Heard::kNothing) break;
    if (heard == NetlinkSocket::Heard::kOverrun) {
      ++overruns_;
      table_ = dumpAll();
    }
  }
  std::vector<NetworkChange> changes = table_.changesSince(before);
  if (std::any_of(changes.begin(), changes.end(), mayLoseRoutesSilently)) {
    dumpRoutes(table_);
    changes = table_.changesSince(before);
  }
  return changes;
}

}  // namespace braid
