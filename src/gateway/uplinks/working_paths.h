#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "tunnel/tunnel.h"

namespace braid {

/// The paths by which peers are reached now. A socket alone does not know that, their sessions do.
struct WorkingPaths {
  std::set<SocketId> sockets;
  std::set<std::pair<std::string, std::string>> uplinks;  ///< names of the peer and of the uplink
  std::set<Address> addresses;                            ///< of the peers
  bool doubtful = false;  ///< one of them is silent, and ends to count without an event

  bool has(const std::string& peer, const std::string& uplink) const {
    return uplinks.contains({peer, uplink});
  }
};

/// Looks at each of the tunnel's `peers` once, because there may be a thousand. `onlyNamed`: only
/// at those that are called by host names.
WorkingPaths workingPaths(const Tunnel& tunnel, const std::vector<PeerConfig>& peers,
                          bool onlyNamed, Time now);

}  // namespace braid
