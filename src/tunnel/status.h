#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ackshim/counters.h"
#include "base/time.h"
#include "scheduler/path/path_tiers.h"

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
using DropCounts = std::array<uint64_t, kDropCount>;

struct SubflowStatus {
  unsigned id = 0;
  std::string uplink;
  std::string local, remote;
  std::string state;  ///< "validating", "active", "suspect", "failed", "closed"
  Duration srtt{}, rttvar{}, minRtt{};
  Duration queueDelay{};  ///< srtt less minRtt, at least 0: what packets wait for now; 0 without a sample
  uint64_t window = 0, inFlight = 0;
  double pacingRate = 0, deliveryRate = 0;
  uint64_t sentPackets = 0, sentBytes = 0, receivedPackets = 0, receivedBytes = 0;
  uint64_t lostPackets = 0, spuriousLosses = 0, retransmittedBytes = 0, ceMarks = 0;
  std::string ecn;        ///< "testing", "unknown", "capable", "failed": EcnValidator
  uint64_t timeouts = 0;  ///< PTOs (RFC 9002 section 6.2) with data that nothing else had delivered
  uint64_t mtu = 0;
  PathPreference preference{};
  bool resting = false;     ///< carries no data for now: a better uplink is usable
  bool suppressed = false;  ///< carries no data for now: AMP found its subflows at one bottleneck
  // Proactive recovery. Protection sent on this subflow:
  uint64_t copies = 0, parities = 0, protectionBytes = 0;
  // What became of this subflow's own packets:
  uint64_t protectedPackets = 0;  ///< copied or coded elsewhere before they were known to be lost
  uint64_t recovered = 0;  ///< of those, lost here and delivered by a copy or parity: useful protection
  uint64_t decoded = 0;    ///< of those, by a parity, as the peer says
  uint64_t useless = 0;    ///< protected and acknowledged here all the same
  double lossRate = 0;     ///< L (CoFUSO section 4.2.4)
  double lossMetric = 0;   ///< C_l (FUSO section III-B.1)
  double burst = 1;        ///< mean run of losses, packets
};

struct FlowStatus {
  std::string name;  ///< "tcp 10.0.0.1:443 > 10.0.0.2:5000"
  uint64_t packets = 0, bytes = 0, queuedBytes = 0, drops = 0, marks = 0;
  uint64_t unacked = 0;  ///< packets sent and not known delivered
};

struct PeerStatus {
  std::string name;
  std::string pin;
  bool up = false;
  Duration age{};  ///< of the session
  unsigned keyEpoch = 0;
  std::string cipher;
  size_t innerMtu = 0;
  uint64_t innerSentPackets = 0, innerSentBytes = 0, innerReceivedPackets = 0, innerReceivedBytes = 0;
  uint64_t retransmitted = 0, heldPackets = 0, heldBytes = 0;
  uint64_t suppressions = 0;  ///< how often AMP sent over one subflow only
  std::string recovery;       ///< policy of flows in no class
  uint64_t blocks = 0;        ///< coding blocks begun as sender
  /// As receiver: parities that came, blocks that they completed, packets that they gave back, blocks evicted
  /// before they were complete.
  uint64_t paritiesReceived = 0, blocksDecoded = 0, packetsDecoded = 0, blocksEvicted = 0;
  std::vector<SubflowStatus> subflows;
  std::vector<FlowStatus> flows;
};

/// A metered uplink; bytes of the present period.
struct MeterStatus {
  std::string uplink;
  uint64_t used = 0, cap = 0;
  bool closed = false;  ///< at its cap
};

/// The ack shim (docs/ackshim.md).
struct ShimStatus {
  bool on = false;
  ShimCounters counters{};
  uint64_t flows = 0;          ///< tracked now
  uint64_t cachedPackets = 0;  ///< kept now
};

struct TunnelStatus {
  std::vector<MeterStatus> meters;
  std::vector<PeerStatus> peers;
  ShimStatus shim;
  DropCounts drops{};
  uint64_t buffersInUse = 0, buffersLimit = 0;
  uint64_t handshakes = 0;
};

}  // namespace braid
