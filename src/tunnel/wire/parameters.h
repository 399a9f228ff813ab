#pragma once

// What each side says about itself at the start of a session, in a PARAMS frame (docs/protocol.md
// section 5). Modeled on QUIC's transport parameters (RFC 9000 section 7.4): entries of id, length
// and value, of which a receiver skips those that it does not know. So a later release can say more
// without a new version of the protocol.

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace braid {

/// Limits that the other side must keep to, and what the sender of the frame is able to do. The
/// defaults here hold for a side that has said nothing yet, or whose release does not know an
/// entry.
struct Params {
  /// Bit of `lanes`: the lane of inner packets.
  static constexpr uint64_t kPacketLane = 1;
  /// Bit of `lanes`: the lane of streams. Only with this bit, the entries kStreams and
  /// kStreamCredit are sent.
  static constexpr uint64_t kStreamLane = 2;
  /// Bit of `lanes`: openings of streams that ask for an answer are understood, and get one.
  static constexpr uint64_t kStreamAnswers = 4;
  /// Least value of largestDatagram.
  static constexpr uint64_t kMinDatagram = 1200;

  uint64_t largestDatagram = 65527;  ///< most bytes of UDP payload accepted; at least kMinDatagram
  uint64_t symbols = 1024;           ///< kept for decoding, per subflow; 0: parities are of no use
  uint64_t heldSpan = 4096;          ///< DSNs from a hole on that an ordered flow holds; at least 1
  uint64_t lanes = kPacketLane;      ///< lanes that are understood, a bit each
  uint64_t streams = 0;  ///< at a time, of both sides, from which on the other side opens no more
  /// Bytes that the other side may send on a stream that it opens, before a STREAM_CREDIT.
  uint64_t streamCredit = 65536;

  /// Receive times that are taken in an ACK. With 0 the other side sends ACKs without one.
  uint64_t receiveTimes = 0;

  bool hasStreams() const { return lanes & kStreamLane; }
  bool answersOpenings() const { return lanes & kStreamAnswers; }
};

/// Ids of the entries. Those of the form 31 N + 27 mean nothing and never will (GREASE, RFC 9000
/// section 18.1).
enum class ParamId : uint8_t {
  kLargestDatagram = 1,
  kSymbols = 2,
  kHeldSpan = 3,
  kLanes = 4,
  kStreams = 5,
  kStreamCredit = 6,
  kReceiveTimes = 7,
};
constexpr bool isGreaseParam(uint64_t id) {
  return id >= 27 && (id - 27) % 31 == 0;
}

/// Most bytes that writeParams() writes: seven entries, and one without a meaning.
inline constexpr size_t kLargestParams = 7 * (2 + 8) + 4 + 1 + 7;

/// Writes the entries. When `grease` is not 0, adds an entry without a meaning, which `grease`
/// selects.
void writeParams(Writer& out, const Params& params, uint64_t grease);
/// Reads the entries. Parameters that they do not name stay as they are in `params`. Returns false
/// when the entries are malformed: ids do not ascend, lengths do not fit, or a value is not
/// allowed.
bool readParams(ByteView entries, Params& params);

}  // namespace braid
