#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace braid {

/// What a kernel must be told of a TCP packet that stands for several segments (virtio 1.2 section 5.1.6.2).
struct TcpOffload {
  bool isV6 = false;
  uint16_t headers = 0;        ///< bytes of link, IP and TCP header
  uint16_t payload = 0;        ///< of each segment but the last
  uint16_t checksumStart = 0;  ///< where the TCP header begins
  static constexpr uint16_t kChecksumOffset = 16;
};

/// TCP segments in a row that may be given to the kernel as one packet, from which it could make each of them again
/// (generic receive offload): equal headers, the next sequence number, and the same length but for the last. A segment
/// whose checksum is wrong is no part of a run, for the kernel would take it for a good one. The first one's is looked
/// at when a second one comes: one that stays alone goes as it is.
///
///     begin(a), extend(b), extend(c); false: what came before is a packet by itself, and the next one may begin a run
///     finish(a): a's headers become those of all; the payloads of b and c follow it
class TcpRun {
 public:
  /// As many as Linux has fragments in one packet, and then some.
  static constexpr size_t kMost = 64;
  static constexpr size_t kMostBytes = 65535;

  /// Packets begin with so many bytes of link header, which must be equal; the last two are an EtherType. 0: none.
  explicit TcpRun(size_t linkHeader) : linkHeader_(linkHeader) {}

  /// Starts anew with this packet, which must stay where it is until finish(). False when it cannot be one of several.
  bool begin(ByteView packet);
  /// True when the packet continues the run, and is part of it now.
  bool extend(ByteView packet);
  /// Packets of the run; 0: none has begun.
  size_t count() const { return count_; }
  void clear() { count_ = 0, ended_ = true; }
  /// Bytes of link, IP and TCP header of each packet.
  size_t headers() const { return headers_; }
  /// Changes the headers of the packet that the run began with: lengths and flags are those of the whole, the TCP
  /// checksum is the sum of the pseudo header, which the kernel completes.
  TcpOffload finish(ByteSpan first) const;

 private:
  bool isLike(ByteView packet) const;
  size_t tcpOffset() const { return linkHeader_ + ipHeader_; }

  size_t linkHeader_;
  ByteView first_;
  size_t ipHeader_ = 0, headers_ = 0;
  size_t payload_ = 0;  ///< of the first
  size_t bytes_ = 0;    ///< of payload, in all
  size_t count_ = 0;
  bool ended_ = true;  ///< nothing may follow
  bool push_ = false;
};

}  // namespace braid
