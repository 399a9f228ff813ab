#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/drop.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/session/session.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

class Peer;

/// Finds the session that a datagram belongs to, by the session id in the header. A session is in
/// the index exactly as long as it lives: the handle that owns the session removes it from the
/// index, and adds its drop counts to ended().
class SessionIndex {
 public:
  struct Entry {
    Peer* peer = nullptr;
    Session* session = nullptr;
    RestartNotice notice{};  ///< the restart notice that would end it
  };
  struct TakeOut {
    SessionIndex* index = nullptr;
    void operator()(Session* session) const {
      index->entries_.erase(session->id());
      session->giveUp();
      addDrops(index->ended_, session->drops());
      delete session;
    }
  };
  using Handle = std::unique_ptr<Session, TakeOut>;

  /// Adds the session. Returns an empty handle when its id is already in use; the session is then
  /// destroyed.
  Handle add(Peer& peer, std::unique_ptr<Session> session, const RestartNotice& notice) {
    if (!entries_.try_emplace(session->id(), Entry{&peer, session.get(), notice}).second) return {};
    return Handle(session.release(), TakeOut{this});
  }
  /// Null pointers when no session has this id.
  Entry find(uint32_t id) const {
    auto found = entries_.find(id);
    return found == entries_.end() ? Entry{} : found->second;
  }
  /// Drop counts of the sessions that have ended, and of packets staged for a peer without a
  /// session.
  const DropCounts& ended() const { return ended_; }
  DropCounts& ended() { return ended_; }

 private:
  std::unordered_map<uint32_t, Entry> entries_;
  DropCounts ended_{};
};

/// The responder's pending sessions: their handshake is done, but they are not in use. The
/// initiator tries several routes at once and keeps the handshake that finishes first on its side.
/// Its first datagram tells which one that was.
class PendingSessions {
 public:
  /// Maximum number of sessions from which the peer may still choose, and how long it may take.
  static constexpr size_t kMaxCandidates = 4;
  static constexpr Duration kForget = kHandshakeTimeout;

  /// Adds a session; when there are already kMaxCandidates, the oldest is dropped.
  void add(SessionIndex::Handle session) {
    if (sessions_.size() >= kMaxCandidates) sessions_.erase(sessions_.begin());
    sessions_.push_back(std::move(session));
  }
  /// Takes the oldest session that the peer has chosen and that `mayTake(const Session&)` accepts,
  /// and drops the others. Empty: there is none.
  template <typename F>
  SessionIndex::Handle takeChosen(F&& mayTake) {
    auto chosen = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& s) {
      return s->confirmed() && !s->over() && mayTake(*s);
    });
    if (chosen == sessions_.end()) return {};
    SessionIndex::Handle taken = std::move(*chosen);
    sessions_.clear();
    return taken;
  }
  /// Takes the session of this handshake, if the peer has sent nothing in it; it can then no longer
  /// be chosen. Empty: there is none. A session that the peer uses stays: the peer's question may
  /// even have come in that session.
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
  /// When onTimer() has a session to drop. The sessions have their own timers.
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
