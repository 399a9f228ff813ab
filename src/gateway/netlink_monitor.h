#pragma once

#include <cstdint>
#include <vector>

#include "gateway/netlink_socket.h"
#include "gateway/netlink_table.h"

namespace braid {

/// Follows links, addresses and default routes of the host.
class NetlinkMonitor {
 public:
  /// Reads everything. Throws SystemError.
  NetlinkMonitor();

  /// Readable when something changed: then call process().
  int fd() const { return events_.fd(); }
  const NetlinkTable& table() const { return table_; }
  /// Takes in what is to be heard and tells what it changed. Never blocks for longer than the kernel needs
  /// for a dump.
  std::vector<NetlinkChange> process();
  /// How often the kernel dropped notifications and everything was read anew.
  uint64_t overruns() const { return overruns_; }

 private:
  void dumpRoutes(NetlinkTable& table);
  NetlinkTable dumpAll();

  NetlinkSocket events_;
  NetlinkSocket requests_;
  NetlinkTable table_;
  uint64_t overruns_ = 0;
};

}  // namespace braid
