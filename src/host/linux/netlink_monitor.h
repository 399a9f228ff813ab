#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/linux/netlink.h"
#include "host/network.h"

namespace braid {

/// Follows the host's network by rtnetlink notifications.
class NetlinkMonitor final : public NetworkMonitor {
 public:
  /// Reads the present state. `receiveBytes`: size of the kernel's buffer for notifications; tests
  /// use a small one. Throws SystemError.
  explicit NetlinkMonitor(int receiveBytes = NetlinkSocket::kReceiveBytes);

  /// The descriptor becomes readable when something changed: then call process().
  int fd() const { return events_.fd(); }
  const NetworkTable& table() const override { return table_; }
  std::vector<NetworkChange> process(Time now) override;
  Time deadline() const override { return readAt_; }
  /// How often the kernel dropped notifications.
  uint64_t overruns() const { return overruns_; }

 private:
  bool hear();
  void readAnew(Time now);
  /// Returns an errno; 0: done. EINTR: something may be missing or outdated.
  int readRoutes(NetworkTable& table);
  int readAll(NetworkTable& table);
  void findPaths();

  NetlinkSocket events_;
  NetlinkSocket requests_;
  NetworkTable table_;
  std::map<int, std::string> looked_;  // the name by which a link's path was last looked for
  uint64_t overruns_ = 0;
  Time readAt_ = kNever;         // when everything must be read again
  Time earliest_ = Time::min();  // everything is not read again before this time
  Duration pause_;               // least pause after the last reading of everything
};

/// Applies an RTM_{NEW,DEL}{LINK,ADDR,ROUTE}, RTM_DELRULE or RTM_NEWNETCONF message to the table.
/// Other and malformed messages change nothing.
void applyNetlink(const nlmsghdr& message, NetworkTable& table);

}  // namespace braid
