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
  /// The initiator gets a key notice when its datagrams have not opened for this time. Chosen: an
  /// initiator sends its second PATH_CHALLENGE about 1 s after the first one. A datagram that
  /// somebody forged comes among the initiator's own, which open.
  static constexpr Duration kKeysDifferAfter = 500ms;
  /// Maximum number of key notices about a session. Chosen: one for each route of most initiators.
  static constexpr unsigned kMostKeyNotices = 8;

  struct Candidate {
    SessionIndex::Handle session;
    KeyNotice notice;
    Time unopenedSince = kNever;  ///< when the first datagram came that did not open
    unsigned keyNotices = 0;      ///< that the initiator gets, until now
  };

  /// Adds a session, with the notice that its keys differ; when there are already kMaxCandidates,
  /// the oldest is dropped.
  void add(SessionIndex::Handle session, const KeyNotice& notice) {
    if (candidates_.size() >= kMaxCandidates) candidates_.erase(candidates_.begin());
    candidates_.push_back({std::move(session), notice});
  }
  /// Takes the oldest session that the peer has chosen and that `mayTake(const Session&)` accepts,
  /// and drops the others. Empty: there is none.
  template <typename F>
  SessionIndex::Handle takeChosen(F&& mayTake) {
    auto chosen = std::ranges::find_if(candidates_, [&](const Candidate& c) {
      return c.session->confirmed() && !c.session->over() && mayTake(*c.session);
    });
    if (chosen == candidates_.end()) return {};
    SessionIndex::Handle taken = std::move(chosen->session);
    candidates_.clear();
    return taken;
  }
  /// Takes the session of this handshake, if the peer has sent nothing in it; it can then no longer
  /// be chosen. Empty: there is none. A session that the peer uses stays: the peer's question may
  /// even have come in that session.
  SessionIndex::Handle take(uint32_t handshake) {
    auto meant = std::ranges::find_if(candidates_, [&](const Candidate& c) {
      return c.session->id() == handshake && !c.session->confirmed();
    });
    if (meant == candidates_.end()) return {};
    SessionIndex::Handle taken = std::move(meant->session);
    candidates_.erase(meant);
    return taken;
  }
  /// A datagram of a session did not open. Returns the session with the key notice that its
  /// initiator is to get; nullptr: none, because the session is not pending, something has opened
  /// in it, or what came may have been forged.
  const Candidate* onUnopened(const Session& session, Time now) {
    auto meant = std::ranges::find_if(
        candidates_, [&](const Candidate& c) { return c.session.get() == &session; });
    if (meant == candidates_.end() || session.confirmed()) return nullptr;
    meant->unopenedSince = std::min(meant->unopenedSince, now);
    if (now - meant->unopenedSince < kKeysDifferAfter || meant->keyNotices == kMostKeyNotices)
      return nullptr;
    ++meant->keyNotices;
    return &*meant;
  }
  void onTimer(Time now) {
    std::erase_if(candidates_, [&](const Candidate& c) {
      return c.session->isDone() || now > forgetAt(*c.session);
    });
  }
  void clear() { candidates_.clear(); }
  template <typename F>
  void forEach(F&& visit) const {
    for (const Candidate& c : candidates_) visit(*c.session);
  }
  /// When onTimer() has a session to drop. The sessions have their own timers.
  Time nextDeadline() const {
    Time next = kNever;
    for (const Candidate& c : candidates_) next = std::min(next, forgetAt(*c.session));
    return next;
  }

 private:
  static Time forgetAt(const Session& s) { return s.lastHeard() + kForget; }
  std::vector<Candidate> candidates_;  ///< oldest first
};

}  // namespace braid
