#pragma once

#include <cstdint>
#include <vector>

#include "host/linux/netlink_socket.h"
#include "host/network_monitor.h"

namespace braid {

/// Hears of changes by rtnetlink.
class NetlinkMonitor final : public NetworkMonitor {
 public:
  /// Reads everything. Throws SystemError. `receiveBytes`: of notifications that the kernel keeps; tests have
  /// few.
  explicit NetlinkMonitor(int receiveBytes = NetlinkSocket::kReceiveBytes);

  /// Readable when something changed: then call process().
  int fd() const { return events_.fd(); }
  const NetworkTable& table() const override { return table_; }
  std::vector<NetworkChange> process(Time now) override;
  Time deadline() const override { return readAt_; }
  /// How often the kernel dropped notifications.
  uint64_t overruns() const { return overruns_; }

 private:
  bool hear();
  void readAnew(Time now);
  /// errno; 0: done. EINTR: something may be missing or old.
  int readRoutes(NetworkTable& table);
  int readAll(NetworkTable& table);

  NetlinkSocket events_;
  NetlinkSocket requests_;
  NetworkTable table_;
  uint64_t overruns_ = 0;
  Time readAt_ = kNever;         // when everything is to be read anew
  Time earliest_ = Time::min();  // not before this
  Duration pause_;               // after the last reading of everything
};

}  // namespace braid
