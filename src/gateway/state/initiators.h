#pragma once

// Keeps the known initiators over restarts of the gateway. After a restart it sends them restart
// notices (tunnel/peer/restart_notice.h), so that they reconnect at once.

#include <map>
#include <optional>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log/log.h"
#include "gateway/state/initiator_store.h"
#include "gateway/uplinks/listeners.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Keeps the known initiators over restarts of the gateway, and sends them restart notices then.
/// Keeps nothing on a gateway that does not listen, or that has an endpoint of each peer.
class InitiatorTracker {
 public:
  /// A change is written after this time, so that changes that come together are written once.
  static constexpr Duration kSettle = 100ms;
  /// Shortest time between two writes. It spares flash memory when addresses change all the time.
  static constexpr Duration kPause = 2s;
  /// A peer that was here before the start and has not come back stays in the file for this time,
  /// in case of another restart. After it, the peer has forgotten its session, too
  /// (Peer::kIdleTimeout).
  static constexpr Duration kAway = 180s;

  /// All must outlive this.
  InitiatorTracker(Tunnel& tunnel, Listeners& listeners, LogLimiter& log)
      : tunnel_(tunnel), listeners_(listeners), log_(log) {}

  /// Call at the start, when listeners and peers are set up: sends the restart notices.
  void begin(const Config& config, Time now);
  /// Call when the configuration has changed.
  void configure(const Config& config, Time now);
  /// Call when a peer may have come, left or moved to another address.
  void onChange(Time now);
  /// Writes the present initiators to the file. Call at deadline(), and before the sessions end.
  void keep(Time now);
  Time deadline() const { return deadline_; }

 private:
  void load(Time now);
  StoredInitiator kept(const KnownInitiator& initiator) const;

  Tunnel& tunnel_;
  Listeners& listeners_;
  LogLimiter& log_;
  std::optional<InitiatorStore> store_;
  std::map<Pin, StoredInitiator> away_;  ///< known from before the start, and not back yet
  Time awayUntil_ = kNever;
  Time deadline_ = kNever;
  Time next_ = Time::min();  ///< the file is not written before this time
};

}  // namespace braid
