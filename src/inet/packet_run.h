#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "inet/protocol.h"

namespace braid {

/// What a kernel must be told of a TCP or UDP packet that stands for several (virtio 1.2 section 5.1.6.2).
struct RunOffload {
  bool isV6 = false;
  bool isUdp = false;
  uint16_t headers = 0;         ///< bytes of link, IP and transport header
  uint16_t payload = 0;         ///< of each packet but the last
  uint16_t checksumStart = 0;   ///< where the transport header begins
  uint16_t checksumOffset = 0;  ///< the field in that
};

/// TCP segments in a row, or UDP datagrams, that may be given to the kernel as one packet, from which it could make each
/// of them again (generic receive offload): equal headers, of TCP the next sequence number, and the same length but for
/// the last. A packet whose checksum is wrong is no part of a run, for the kernel would take it for a good one. The
/// first one's is looked at when a second one comes: one that stays alone goes as it is.
///
///     begin(a), extend(b), extend(c); false: what came before is a packet by itself, and the next one may begin a run
///     finish(a): a's headers become those of all; the payloads of b and c follow it
class PacketRun {
 public:
  /// As many datagrams as Linux takes for one of UDP, and more than it has fragments in one packet.
  static constexpr size_t kMost = 64;
  static constexpr size_t kMostBytes = 65535;

  /// Packets begin with so many bytes of link header, which must be equal; the last two are an EtherType. 0: none.
  explicit PacketRun(size_t linkHeader) : linkHeader_(linkHeader) {}
  /// Whether UDP datagrams may be a run; at first they may not.
  void setTakesUdp(bool takes) { takesUdp_ = takes; }

  /// Starts anew with this packet, which must stay where it is until finish(). False when it cannot be one of several.
  bool begin(ByteView packet);
  /// True when the packet continues the run, and is part of it now.
  bool extend(ByteView packet);
  /// Packets of the run; 0: none has begun.
  size_t count() const { return count_; }
  void clear() { count_ = 0, ended_ = true; }
  /// Bytes of link, IP and transport header of each packet.
  size_t headers() const { return headers_; }
  /// Changes the headers of the packet that the run began with: lengths and flags are those of the whole, the
  /// transport's checksum is the sum of the pseudo header, which the kernel completes.
  RunOffload finish(ByteSpan first) const;

 private:
  bool isLike(ByteView packet) const;
  bool isNextSegment(ByteView a, ByteView b) const;
  bool isTcp() const { return protocol_ == ip::kTcp; }
  size_t l4Offset() const { return linkHeader_ + ipHeader_; }

  size_t linkHeader_;
  bool takesUdp_ = false;
  ByteView first_;
  uint8_t protocol_ = ip::kTcp;
  size_t ipHeader_ = 0, headers_ = 0;
  size_t payload_ = 0;  ///< of the first
  size_t bytes_ = 0;    ///< of payload, in all
  size_t count_ = 0;
  bool ended_ = true;  ///< nothing may follow
  bool push_ = false;
};

/// A number that all packets of a TCP or UDP flow share, and few other flows: runs of several flows may grow at the same
/// time when each has its own by that. `linkHeader` as above. nullopt: not a whole packet of such a flow (fragments, IPv4
/// options, IPv6 extension headers), or of no such flow.
std::optional<uint32_t> runNumber(ByteView packet, size_t linkHeader);

/// Of a packet without a number: whether it may belong to a flow that has one, and so is to be after all that came
/// before it. False only of whole IP packets that say at once that they hold another protocol.
bool mayBeOfSomeRun(ByteView packet, size_t linkHeader);

}  // namespace braid
