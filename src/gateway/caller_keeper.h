#pragma once

#include <map>
#include <optional>

#include "base/time.h"
#include "gateway/caller_book.h"
#include "gateway/config/config.h"
#include "gateway/listeners.h"
#include "gateway/log.h"
#include "tunnel/tunnel.h"

namespace braid {

/// Keeps who came to this gateway over its restarts, and has them called back then. A gateway that does not listen, or
/// that has an endpoint of each peer, keeps nothing.
class CallerKeeper {
 public:
  /// What has changed is written so much later: what changes together is written once.
  static constexpr Duration kSettle = 100ms;
  /// From one writing to the next. Ours: it spares flash memory when addresses change all the time.
  static constexpr Duration kPause = 2s;
  /// Who was here before the start and has not come back stays in the file for so long, for another restart: later the
  /// peer has forgotten its session, too (Peer::kForget).
  static constexpr Duration kAway = 180s;

  /// All must outlive this.
  CallerKeeper(Tunnel& tunnel, Listeners& listeners, LogLimiter& log)
      : tunnel_(tunnel), listeners_(listeners), log_(log) {}

  /// At start, with listeners and peers in place: calls back who was here.
  void begin(const Config& config, Time now);
  /// The configuration is another one.
  void configure(const Config& config, Time now);
  /// A peer may have come, gone or moved.
  void onChange(Time now);
  /// Writes down who is here. Call at deadline(), and before the sessions end.
  void keep(Time now);
  Time deadline() const { return deadline_; }

 private:
  void load(Time now);
  KeptCaller kept(const Caller& caller) const;

  Tunnel& tunnel_;
  Listeners& listeners_;
  LogLimiter& log_;
  std::optional<CallerBook> book_;
  std::map<Pin, KeptCaller> away_;  ///< from before the start, and not back yet
  Time awayUntil_ = kNever;
  Time deadline_ = kNever;
  Time next_ = Time::min();  ///< no writing before
};

}  // namespace braid
