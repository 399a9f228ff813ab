#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/control/gateway_status.h"
#include "gateway/log/log.h"
#include "gateway/state/history_recorder.h"
#include "gateway/uplinks/peer_resolver.h"
#include "gateway/uplinks/portal_watch.h"
#include "gateway/uplinks/uplink.h"
#include "host/host.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Has captive portals looked for at the uplinks by which no peer is reached, announces them, and
/// lets hosts of the LAN out to their pages as far as planPortals() says. What fails here is
/// logged, and tried again; everything is shut meanwhile.
class CaptivePortals {
 public:
  struct Parts {
    Host& host;
    const NetworkMonitor& monitor;
    const Tunnel& tunnel;
    const Uplinks& uplinks;
    const PeerResolver& resolver;
    const Config& config;  ///< in effect
    LogLimiter& log;
    HistoryRecorder& history;
  };

  /// All of `parts` must outlive this. `device`: the name that the host gave the gateway's
  /// interface.
  CaptivePortals(const Parts& parts, std::string device, const HostNumbers& numbers)
      : parts_(parts),
        device_(std::move(device)),
        numbers_(numbers),
        watch_(parts.host, parts.log) {}

  /// Call when a path of a peer, an uplink or the configuration may have changed.
  void follow();
  /// Call when the host's interfaces or addresses may have changed.
  void onNetworkChange();
  /// Does what is due. Call it in every turn of the event loop.
  void turn(Time now);
  /// When turn() is due at the latest.
  Time deadline() const { return std::min({watch_.deadline(), followAt_, retryAt_}); }
  /// Shuts everything.
  void stop() { gate_.reset(); }
  /// Adds each uplink's portal.
  void addTo(std::vector<UplinkStatus>& uplinks) const;

 private:
  void open(Time now);
  void announce(Time now);

  Parts parts_;
  std::string device_;
  HostNumbers numbers_;
  PortalWatch watch_;
  std::unique_ptr<PortalGate> gate_;  ///< nullptr: everything is shut
  PortalRules opened_;
  std::map<std::string, std::string> told_;  ///< PortalPlan::told
  std::set<Address> reached_;  ///< private addresses of peers' names at which a peer was reached
  bool peerUp_ = false;
  Time followAt_ = kNever;  ///< when a path may have failed by the time alone
  Time retryAt_ = kNever;   ///< when what the host refused is tried again
};

}  // namespace braid
