#pragma once

// The frames of streams (docs/protocol.md sections 5 and 13), after RFC 9000 section 19.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/packet.h"
#include "inet/endpoint.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// What a stream connects.
struct StreamEnds {
  Endpoint source;       ///< the client's address and port
  Endpoint destination;  ///< the server's; of the same address family
  bool operator==(const StreamEnds&) const = default;
};

/// What stands in each frame of a stream until its opener knows that the other side has one of them.
struct StreamOpening {
  StreamEnds ends;
  uint64_t credit = 0;  ///< bytes that the other side may send back before a STREAM_CREDIT
};

/// A range of a stream's bytes. Like a DATA frame it has kDataFrameHeader bytes before a payload, which is what travels
/// as a unit: stream, opening, bytes.
struct StreamFrame {
  static constexpr uint8_t kFirst = 0x14, kLast = 0x17;
  /// Bits of the type.
  static constexpr uint8_t kFin = 1, kOpen = 2;
  /// Offsets are below this one.
  static constexpr uint64_t kEnd = uint64_t{1} << 48;

  uint8_t type = kFirst;
  uint64_t offset = 0;  ///< of the first byte in the stream
  ByteView payload;     ///< as on the wire, `bytes` at its end
  StreamId stream{};
  std::optional<StreamOpening> opening;  ///< with kOpen
  ByteView bytes;                        ///< empty only with kFin or kOpen

  bool fin() const { return type & kFin; }
  /// Offset behind the last byte; with kFin the length of the stream.
  uint64_t end() const { return offset + bytes.size(); }
};

/// The receiver of this may send the stream's bytes up to there; the largest one counts.
struct StreamCreditFrame {
  StreamId stream{};
  uint64_t limit = 0;  ///< offset behind the last byte that may be sent
};

/// The stream ends at once, both ways; what has not arrived is lost.
struct StreamResetFrame {
  StreamId stream{};
  uint64_t code = 0;  ///< StreamCause; one that is not known counts as its kReset
};

/// Most bytes before the data of a stream's unit: stream, IP version, two IPv6 endpoints, credit.
inline constexpr size_t kLargestStreamPrefix = 8 + 1 + 2 * (16 + 2) + 8;

/// What stands before the data in a unit of a stream; `opening`: nullptr for none.
void writeStreamPrefix(Writer& out, StreamId stream, const StreamOpening* opening);
/// Reads a unit: what follows the header of the frame, whose type and offset are set. False when malformed.
bool readStreamUnit(ByteView unit, StreamFrame& frame);
/// Type, offset and length, kDataFrameHeader bytes in all; the unit follows.
void writeStreamHeader(uint8_t type, uint64_t offset, size_t length, uint8_t* out);
/// Cuts a well-formed unit of this type in two, of which the first one has at most `size` bytes; the second one goes to
/// `rest`, an empty packet, with the same prefix. Returns how many bytes of the stream stay in the first; 0, and nothing
/// is changed, when that is less than one. kFin belongs to the second one then.
size_t cutStreamUnit(uint8_t type, Packet& unit, size_t size, Packet& rest);

void writeFrame(Writer& out, const StreamCreditFrame&);
void writeFrame(Writer& out, const StreamResetFrame&);

}  // namespace braid
