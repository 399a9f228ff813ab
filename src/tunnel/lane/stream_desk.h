#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ring.h"
#include "tunnel/lane/stream_io.h"

namespace braid {

class Stream;

/// Where streams of all sessions and the driver meet: the handles, what is to be told, and which sessions the driver has
/// given work to.
///
/// A stream has a handle from seat() to end() or release(). A handle's place is used again once its last event was
/// polled, with another generation. Each place waits at most once to be polled. Streams that peers have opened are told of
/// behind all others, those of the sessions in turn.
class StreamDesk {
 public:
  /// What is told of a living stream.
  enum class Word : uint8_t { kReadable = 1, kWritable = 2 };

  /// A stream begins.
  StreamHandle seat(Stream& stream);
  /// nullptr: the handle is dead.
  Stream* find(StreamHandle handle) const {
    const Seat* seat = seatOf(handle);
    return seat ? seat->stream : nullptr;
  }
  /// The peer has opened the stream, by this session. Nothing else is told of it before.
  void announce(StreamHandle handle, uint32_t session);
  void tell(StreamHandle handle, Word word);
  /// The stream is no more, which the driver is told: it was reset, or (nullopt) all is done.
  void end(StreamHandle handle, std::optional<StreamCause> reset);
  /// The stream is no more, as the driver wants it: what was to be told is not told.
  void release(StreamHandle handle);

  /// The next event; false: there is none.
  bool poll(StreamEvent& out);
  /// Streams that are seated, those whose end was not polled included.
  size_t size() const { return seats_.size() - free_.size(); }

  /// The session with this id has something to send, though nothing came for it.
  void touch(uint32_t session) {
    if (touched_.empty() || touched_.back() != session) touched_.push_back(session);
  }
  bool hasTouched() const { return !touched_.empty(); }
  /// Calls visit(session id) for each that was touched since.
  template <typename F>
  void takeTouched(F&& visit) {
    for (uint32_t session : touched_) visit(session);
    touched_.clear();
  }

 private:
  struct Seat {
    Stream* stream = nullptr;
    uint32_t generation = 1;
    uint8_t words = 0;    ///< Word
    bool opened = false;  ///< by the peer, to be told
    bool queued = false;  ///< in ready_ or openings_
    bool ended = false;   ///< to be told
    std::optional<StreamCause> reset;
  };

  const Seat* seatOf(StreamHandle handle) const;
  void queue(uint32_t place);
  bool take(uint32_t& place);
  void free(uint32_t place);

  std::vector<Seat> seats_;
  std::vector<uint32_t> free_;
  Ring<uint32_t> ready_;
  std::map<uint32_t, Ring<uint32_t>> openings_;  ///< by session
  uint32_t turn_ = 0;                            ///< the session whose opening was told last
  std::vector<uint32_t> touched_;
};

}  // namespace braid
