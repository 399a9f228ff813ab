#pragma once

#include <cstddef>
#include <cstdint>

namespace braid {

class Budget;
class StreamDesk;

/// Settings of the stream lane.
struct StreamOptions {
  bool on = false;      ///< streams are opened, and taken from the peer
  size_t most = 16384;  ///< streams of a peer at once, of both sides
  /// Streams a second that a peer may open in the long run, and four times as many at once; this side opens half as many
  /// (StreamRations). Ours: a page with all that it needs asks for some hundred connections, and a site of some thousand
  /// users for a hundred a second; at 50 us each for the far gateway's kernel, 512 a second are 3 % of a core.
  uint32_t newPerSecond = 512;
  size_t firstCredit = 256 << 10;  ///< bytes of a stream that the peer may send back before it hears more
  size_t firstUpload = 64 << 10;   ///< bytes of one that the peer has opened, likewise
  size_t mostCredit = 8 << 20;  ///< bytes of a stream that are held for a slow reader; at most kCreditBound
  size_t heldBytes = 32 << 20;  ///< memory held of a peer's streams, bytes: StreamAssembly::footprint()
  size_t queuedBytes = 256 << 10;   ///< bytes of a stream that wait to be sent, at most
  Budget* memory = nullptr;         ///< bytes held, of all peers; set by Tunnel
  StreamDesk* desk = nullptr;       ///< where the driver meets streams; set by Tunnel
  size_t allHeldBytes = 128 << 20;  ///< its size

  /// Bound on mostCredit: what StreamAssembly can tell apart.
  static constexpr size_t kCreditBound = 15 << 20;
};

}  // namespace braid
