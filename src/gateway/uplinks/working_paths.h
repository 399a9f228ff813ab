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

  bool has(const std::string& peer, const std::string& uplink) const {
    return uplinks.contains({peer, uplink});
  }
};

/// Of all peers, or of those that are called by host names. `peers`: the peers of the tunnel. Looks
/// at each of them once, for there may be a thousand.
WorkingPaths workingPaths(const Tunnel& tunnel, const std::vector<PeerConfig>& peers,
                          bool onlyNamed, Time now);

}  // namespace braid
