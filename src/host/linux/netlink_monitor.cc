#include "host/linux/netlink_monitor.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "host/linux/netlink_config.h"
#include "host/system.h"

namespace braid {

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
  return changes;
}

}  // namespace braid
