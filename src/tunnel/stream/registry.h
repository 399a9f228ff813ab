#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/containers.h"
#include "tunnel/stream/stream_io.h"

namespace braid {

class Stream;

/// The streams of all sessions, as the driver sees them: their handles, the events to tell, and the
/// sessions that the driver has given work to.
///
/// A stream has a handle from add() to end() or release(). The place of a handle is reused, with
/// another generation, once its last event was polled. Each place is queued at most once. Openings
/// of streams by peers are told after all other events, and the sessions take turns with them.
class StreamRegistry {
 public:
  /// Gives a new stream its handle.
  StreamHandle add(Stream& stream);
  /// nullptr when the handle is dead.
  Stream* find(StreamHandle handle) const {
    const Slot* slot = slotOf(handle);
    return slot ? slot->stream : nullptr;
  }
  /// The peer has opened the stream, in this session. No event of the stream is told before.
  void announce(StreamHandle handle, uint32_t session);
  /// `what`: StreamEvent::readable or StreamEvent::writable.
  void tell(StreamHandle handle, bool StreamEvent::*what);
  /// The stream has ended, and the driver is told so: by a reset, or (nullopt) with everything
  /// done.
  void end(StreamHandle handle, std::optional<StreamCause> reset);
  /// The driver wants to hear nothing more of the stream, which may have ended. Events not told yet
  /// are discarded, also its end.
  void release(StreamHandle handle);

  /// Takes the next event; false when there is none.
  bool poll(StreamEvent& out);
  /// Handles in use, including those with a last event that was not polled.
  size_t size() const { return slots_.size() - free_.size(); }

  /// The session with this id has something to send, although nothing came for it.
  void touch(uint32_t session) {
    if (touched_.empty() || touched_.back() != session) touched_.push_back(session);
  }
  bool hasTouched() const { return !touched_.empty(); }
  /// Calls visit(session id) for each session touched since the last call.
  template <typename F>
  void takeTouched(F&& visit) {
    for (uint32_t session : touched_) visit(session);
    touched_.clear();
  }

 private:
  struct Slot {
    Stream* stream = nullptr;
    uint32_t generation = 1;
    bool queued = false;  ///< in ready_ or announced_
    StreamEvent next{};   ///< what is to be told
  };

  const Slot* slotOf(StreamHandle handle) const;
  void queue(uint32_t place);
  bool take(uint32_t& place);
  void free(uint32_t place);

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  Ring<uint32_t> ready_;
  std::map<uint32_t, Ring<uint32_t>> announced_;  ///< places, by session
  uint32_t turn_ = 0;                             ///< the session of the opening that was told last
  std::vector<uint32_t> touched_;
};

}  // namespace braid
