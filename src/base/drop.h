#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid {

/// Why something was thrown away. Every datagram and packet that is not used is counted under one of these.
enum class Drop : uint8_t {
  kRuntDatagram,  ///< shorter than the smallest datagram
  kUnknownType,   ///< first byte neither handshake nor session
  kUnknownVersion,
  kUnknownSession,
  kUnknownSubflow,    ///< subflow number out of range or table full
  kBadSeal,           ///< AEAD did not open it
  kReplay,            ///< packet number seen before or below the window
  kBadFrame,          ///< sealed by the peer and yet malformed
  kHandshakeLimit,    ///< too many handshakes at once
  kHandshakeGarbage,  ///< looked like a handshake record and was none
  kBadInnerPacket,    ///< from the device or the peer, not a well-formed packet
  kNoPeer,            ///< no peer has this inner destination
  kPeerDown,          ///< its peer has no session now
  kForeignSource,     ///< peer sent an inner source outside its prefixes
  kTooBig,            ///< inner packet above the inner MTU, answered with ICMP where it may be
  kQueueFull,         ///< flow queues at their bound
  kAqm,               ///< CoDel
  kFlowTableFull,
  kExpired,       ///< repaired for repairTime and given up
  kLostDatagram,  ///< UDP and the rest: lost and, by design, not sent again
  kHoldOverflow,  ///< resequencer at its byte bound: released out of order
  kDuplicate,     ///< datum delivered before
  kNoBuffer,      ///< packet pool exhausted
  kBadParity,     ///< PARITY that contradicts its block, or decodes to something that is no data
  kCount
};

inline constexpr size_t kDropCount = static_cast<size_t>(Drop::kCount);
/// Stable name for metrics ("bad_seal").
const char* dropName(Drop cause);

/// How much was dropped, by cause.
using DropCounts = std::array<uint64_t, kDropCount>;
inline void countDrop(DropCounts& counts, Drop cause) {
  ++counts[static_cast<size_t>(cause)];
}
inline void addDrops(DropCounts& sum, const DropCounts& more) {
  for (size_t i = 0; i < kDropCount; ++i) sum[i] += more[i];
}

}  // namespace braid
