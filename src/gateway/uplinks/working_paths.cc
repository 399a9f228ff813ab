#include "gateway/uplinks/working_paths.h"

#include <algorithm>

namespace braid {

namespace {

bool carries(const SubflowStatus& s) {
  return s.proven && (s.state == "active" || s.state == "suspect");
}

}  // namespace

WorkingPaths workingPaths(const Tunnel& tunnel, const std::vector<PeerConfig>& peers,
                          bool onlyNamed, Time now) {
  WorkingPaths out;
  const size_t count = std::min(peers.size(), tunnel.peerCount());
  for (size_t i = 0; i < count; ++i) {
    if (onlyNamed && peers[i].hosts.empty()) continue;
    const PeerStatus status = tunnel.peerStatus(i, now, 0);
    for (const SubflowStatus& s : status.subflows) {
      if (!carries(s)) continue;
      out.sockets.insert(s.route.socket);
      out.addresses.insert(s.route.remote.address);
      out.doubtful |= s.state == "suspect";
      out.uplinks.emplace(status.name, s.uplink);
    }
  }
  return out;
}

}  // namespace braid
