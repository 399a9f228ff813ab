#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/drop.h"
#include "tunnel/session/session.h"
#include "tunnel/wire/return_call.h"

namespace braid {

class Peer;

/// Whose session a datagram belongs to, by the session id in its header. A session is in the index exactly as
/// long as it lives: the handle that owns the session takes it out, and leaves its counts here.
class SessionIndex {
 public:
  struct Entry {
    Peer* peer = nullptr;
    Session* session = nullptr;
    ReturnCall call{};  ///< that would end it
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

  /// Empty when the id is taken; then the session is gone.
  Handle add(Peer& peer, std::unique_ptr<Session> session, const ReturnCall& call) {
    if (!entries_.try_emplace(session->id(), Entry{&peer, session.get(), call}).second) return {};
    return Handle(session.release(), TakeOut{this});
  }
  /// Null pointers when no session has that id.
  Entry find(uint32_t id) const {
    auto found = entries_.find(id);
    return found == entries_.end() ? Entry{} : found->second;
  }
  /// What sessions that have ended threw away, and who waited for one.
  const DropCounts& ended() const { return ended_; }
  DropCounts& ended() { return ended_; }

 private:
  std::unordered_map<uint32_t, Entry> entries_;
  DropCounts ended_{};
};

}  // namespace braid
