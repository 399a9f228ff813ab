#pragma once

#include <cstdint>
#include <vector>

#include "host/linux/netlink_socket.h"
#include "host/network_monitor.h"

namespace braid {

/// Hears of changes by rtnetlink.
class NetlinkMonitor final : public NetworkMonitor {
 public:
  /// Reads everything. Throws SystemError.
  NetlinkMonitor();

  /// Readable when something changed: then call process().
  int fd() const { return events_.fd(); }
  const NetworkTable& table() const override { return table_; }
  std::vector<NetworkChange> process() override;
  /// How often the kernel dropped notifications and everything was read anew.
  uint64_t overruns() const { return overruns_; }

 private:
  void dumpRoutes(NetworkTable& table);
  NetworkTable dumpAll();

  NetlinkSocket events_;
  NetlinkSocket requests_;
  NetworkTable table_;
  uint64_t overruns_ = 0;
};

}  // namespace braid
