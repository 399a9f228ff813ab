#pragma once

// What passes between a stream and the driver that holds the TCP connection at its end: names, events, causes.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tunnel/wire/stream_frames.h"

namespace braid {

/// The driver's name for a stream, good across all peers. It is never given twice: a handle that outlives its stream
/// names nothing, and every call with it does nothing.
struct StreamHandle {
  uint32_t place = 0;
  uint32_t generation = 0;  ///< from 1; 0: no stream

  explicit operator bool() const { return generation != 0; }
  auto operator<=>(const StreamHandle&) const = default;
};

/// Why a stream ended before its time. The values are the codes of a RESET frame (docs/protocol.md); a code that this
/// side does not know counts as kReset.
enum class StreamCause : uint8_t {
  kReset = 0,        ///< a host has reset its connection
  kRefused = 1,      ///< the destination refused the connection (RST in answer to SYN)
  kUnreachable = 2,  ///< no route to the destination, or an ICMP error said so
  kTimedOut = 3,     ///< the destination did not answer, or a host fell silent
  kLimit = 4,        ///< a bound on streams or memory is reached
  kGone = 5,         ///< the session with the peer ended, or had no path for too long
  kForbidden = 6,    ///< the source is none of the peer's, or the destination is not to be reached by streams
};
inline constexpr size_t kStreamCauses = 7;

/// What happened to a stream since its last event. Several things may have.
struct StreamEvent {
  StreamHandle stream;
  bool opened =
      false;  ///< the peer has opened it: connect to its ends' destination. The first event of such a stream
  bool readable =
      false;  ///< bytes came, or the end of them: read until readable() is 0, then look at isAtEnd()
  bool writable = false;  ///< writable() was less than the driver asked for and has grown
  bool done =
      false;  ///< all that was written has arrived, all that came was read, both to the end: the handle is dead
  std::optional<StreamCause> reset{};  ///< it ended so, whatever was not read is gone: the handle is dead
};

}  // namespace braid
