#pragma once

// What each side tells of itself at the start of a session, in a PARAMS frame (docs/protocol.md section 5). After
// QUIC's transport parameters (RFC 9000 section 7.4): entries of id, length and value, of which a receiver skips those
// that it does not know. So a later release says more without another version of the protocol.

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace braid {

/// Limits that the other side keeps to, and what its sender is able to do. Of a side that has said nothing yet, or of
/// another release, what stands here holds.
struct Params {
  /// Bit of `lanes`: the lane of inner packets.
  static constexpr uint64_t kPacketLane = 1;
  /// And that of streams; then the entries below are said.
  static constexpr uint64_t kStreamLane = 2;
  /// Least value of largestDatagram.
  static constexpr uint64_t kMinDatagram = 1200;

  uint64_t largestDatagram = 65527;  ///< bytes of UDP payload that are taken; at least kMinDatagram
  uint64_t symbols = 1024;           ///< of a subflow, kept for decoding; 0: parities are of no use
  uint64_t heldSpan = 4096;          ///< DSNs from a hole on that an ordered flow holds; at least 1
  uint64_t lanes = kPacketLane;      ///< lanes that are understood, a bit each
  uint64_t streams = 0;              ///< at a time, of both sides; the other side opens no more then
  uint64_t streamCredit = 65536;     ///< bytes of such a stream that it may send before a STREAM_CREDIT

  bool hasStreams() const { return lanes & kStreamLane; }
};

/// Ids of the entries. Those of the form 31 N + 27 mean nothing and never will (GREASE, RFC 9000 section 18.1).
enum class ParamId : uint8_t {
  kLargestDatagram = 1,
  kSymbols = 2,
  kHeldSpan = 3,
  kLanes = 4,
  kStreams = 5,
  kStreamCredit = 6
};
constexpr bool isGreaseParam(uint64_t id) {
  return id >= 27 && (id - 27) % 31 == 0;
}

/// Most bytes that writeParams() writes: six entries and one that means nothing.
inline constexpr size_t kLargestParams = 6 * (2 + 8) + 4 + 1 + 7;

/// Writes the entries and, when `grease` is not 0, one that means nothing, which `grease` chooses.
void writeParams(Writer& out, const Params& params, uint64_t grease);
/// Reads the entries; what they do not name stays as it is in `params`. False when they are malformed: ids do not go up,
/// lengths do not fit, or a value is not allowed.
bool readParams(ByteView entries, Params& params);

}  // namespace braid
