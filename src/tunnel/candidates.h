#pragma once

#include <algorithm>
#include <vector>

#include "tunnel/handshake.h"
#include "tunnel/session_index.h"

namespace braid {

/// The responder's sessions whose handshake is done, but which are not in use. The initiator tries several routes at
/// once and keeps the handshake that ends first at its side; which one that was, its first datagram tells.
class Candidates {
 public:
  /// Sessions that the peer may still choose from, and how long it has to choose. Ours.
  static constexpr size_t kMaxCandidates = 4;
  static constexpr Duration kForget = kHandshakeTimeout;

  /// When there are too many, the oldest goes.
  void add(SessionIndex::Handle session) {
    if (sessions_.size() >= kMaxCandidates) sessions_.erase(sessions_.begin());
    sessions_.push_back(std::move(session));
  }
  /// The oldest one that the peer has chosen and that `mayTake(const Session&)` accepts; then the others are
  /// gone. Empty: none.
  template <typename F>
  SessionIndex::Handle takeChosen(F&& mayTake) {
    auto chosen = std::find_if(sessions_.begin(), sessions_.end(),
                               [&](const auto& s) { return s->confirmed() && !s->over() && mayTake(*s); });
    if (chosen == sessions_.end()) return {};
    SessionIndex::Handle taken = std::move(*chosen);
    sessions_.clear();
    return taken;
  }
  /// The session of this handshake, under whose keys nothing was heard, and which is not to be chosen any more; empty:
  /// there is none. One that the peer uses stays: it may be the very one in which the peer asks.
  SessionIndex::Handle take(uint32_t handshake) {
    auto isMeant = [&](const auto& s) { return s->id() == handshake && !s->confirmed(); };
    auto meant = std::ranges::find_if(sessions_, isMeant);
    if (meant == sessions_.end()) return {};
    SessionIndex::Handle taken = std::move(*meant);
    sessions_.erase(meant);
    return taken;
  }
  void onTimer(Time now) {
    std::erase_if(sessions_, [&](const auto& s) { return s->isDone() || now > forgetAt(*s); });
  }
  void clear() { sessions_.clear(); }
  template <typename F>
  void forEach(F&& visit) const {
    for (const auto& s : sessions_) visit(*s);
  }
  /// When onTimer() has a session to forget; the sessions have timers of their own.
  Time nextDeadline() const {
    Time next = kNever;
    for (const auto& s : sessions_) next = std::min(next, forgetAt(*s));
    return next;
  }

 private:
  static Time forgetAt(const Session& s) { return s.lastHeard() + kForget; }
  std::vector<SessionIndex::Handle> sessions_;  ///< oldest first
};

}  // namespace braid
