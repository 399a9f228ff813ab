#pragma once

// The file in which a gateway keeps its known initiators: the peers that connected to it. After a
// restart it sends them restart notices (tunnel/peer/restart_notice.h), so that they reconnect at
// once. The file holds no keys: a reader of it can end the peers' sessions, and nothing more.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "gateway/log/log.h"
#include "gateway/uplinks/listeners.h"
#include "inet/addresses.h"
#include "tunnel/peer/restart_notice.h"
#include "tunnel/tunnel.h"

namespace braid {

/// A peer's route in a form that is valid in the next process, too: the listening socket is given
/// by its endpoint.
struct KeptRoute {
  Endpoint listen;
  Address local;  ///< unset: the kernel chooses
  Endpoint remote;
  bool operator==(const KeptRoute&) const = default;
};
struct StoredInitiator {
  Pin pin{};
  RestartNotice notice;
  std::vector<KeptRoute> routes;
  bool operator==(const StoredInitiator&) const = default;
};

class InitiatorStore {
 public:
  /// Converts the content of the file. parse() throws std::exception when format() did not write
  /// it.
  static std::vector<StoredInitiator> parse(std::string_view text);
  static std::string format(const std::vector<StoredInitiator>& initiators);

  /// The file may be missing.
  explicit InitiatorStore(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// What save() wrote; empty when the file is missing. Throws std::runtime_error when the file
  /// cannot be read, or was not written by save().
  std::vector<StoredInitiator> load() const;
  /// Replaces the file atomically, unless it holds these initiators already. Returns what went
  /// wrong; empty: nothing.
  std::string save(const std::vector<StoredInitiator>& initiators);

 private:
  std::string path_;
  std::string saved_;  ///< text of the last save()
};

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
