#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace braid {

/// Settings of the stream lane (streams: TCP connections that are terminated at the gateways).
struct StreamOptions {
  bool on = false;      ///< streams are opened, and accepted from the peer
  size_t most = 16384;  ///< streams with one peer at once, opened by either side
  /// Streams per second that a peer may open in the long run; it may open four times this number at
  /// once. This side opens at most half as many (StreamRateLimits). Chosen: a page with all that it
  /// needs asks for some hundred connections, and a site of some thousand users for a hundred a
  /// second. At 50 us each for the far gateway's kernel, 512 a second are 3 % of a core.
  uint32_t newPerSecond = 512;
  /// Bytes that the peer may send on a stream opened by this side before it gets a STREAM_CREDIT.
  size_t firstCredit = 256 << 10;
  /// Bytes that the peer may send on a stream opened by the peer before it gets a STREAM_CREDIT.
  size_t firstUpload = 64 << 10;
  /// Largest receive window of a stream, bytes held for a slow reader; at most kCreditBound.
  size_t mostCredit = 8 << 20;
  /// Memory of the data held for the readers of a peer's streams, bytes: Reassembler::footprint().
  size_t heldBytes = 32 << 20;
  size_t queuedBytes = 256 << 10;   ///< bytes of a stream that wait to be sent, at most
  size_t allHeldBytes = 128 << 20;  ///< as heldBytes, of all peers together

  /// Bound on mostCredit. It is below StreamWindow::kSpan, the range of offsets that a Reassembler
  /// can tell apart.
  static constexpr size_t kCreditBound = 15 << 20;
};

/// How long a TCP packet waits for a missing one on paths that are not slow.
inline constexpr Duration kHoldTime = 500ms;

/// Settings of the flow queues, of repair and of reordering. The configuration reader checks
/// ranges.
struct QueueOptions {
  enum class Mode : uint8_t { kTun, kTap };
  Mode mode = Mode::kTun;  ///< kTun: inner packets are IP packets; kTap: Ethernet frames
  /// CoDel's target of a flow queue; 0: queueTarget() derives it from the paths.
  Duration codelTarget{};
  /// Least CoDel interval; queueInterval() may give more. RFC 8289 section 4.3 says 100 ms.
  Duration codelInterval = 200ms;
  /// Bytes of all flow queues of a peer together, counted as whole buffers. The default is more
  /// than one buffer for each of `maxFlows`. At the bound the longest queue loses packets, so a
  /// packet that is alone in its flow (a ping, a query, a SYN) is never dropped.
  size_t queueBytes = 10 << 20;
  size_t maxFlows = 4096;   ///< inner flows sent to a peer at once, TCP and datagrams together
  Duration flowIdle = 60s;  ///< a flow without packets for this long is forgotten
  /// Reordering: longest wait for a missing packet. 0: kHoldTime, or longer if a loss and its
  /// repair take longer on the slowest path, see orderPatience().
  Duration holdTime{};
  size_t holdBytes = 12 << 20;  ///< reordering: bytes held per peer, as whole buffers
  /// A TCP packet is repaired for this long, or for orderPatience() if that is longer; then it is
  /// given up.
  Duration repairTime = 3s;
  StreamOptions streams{};  ///< settings of the stream lane
};

}  // namespace braid
