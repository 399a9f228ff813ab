#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/packet.h"
#include "base/rate_limit.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "inet/icmp.h"
#include "inet/inner_packet.h"

namespace braid {

/// Makes ICMP errors to local hosts whose packets the tunnel cannot carry, rate-limited as RFC 1812
/// section 4.3.2.8 asks of a router. A host that causes many errors does not use up those of other
/// hosts, nor those about another peer or another cause. So path MTU discovery still works during a
/// scan of unused addresses.
///
/// Each returned packet is to be written to the device. Its source is the destination of the packet
/// that it answers. For a frame the answer is a frame to its sender, with the same VLAN tags.
class IcmpErrors {
 public:
  /// Limit of errors to one host, for one cause and about one peer (RFC 1812 section 4.3.2.8 asks
  /// for a limit). Hosts and peers with the same hash bucket share it.
  static constexpr RateLimit kEach{50, 10ms};
  /// Limit of errors for one cause to all hosts together.
  static constexpr RateLimit kAll{500, 1ms};
  /// `Offender::peer` of a packet that is not for any peer.
  static constexpr size_t kNoPeer = SIZE_MAX;

  /// A packet that cannot be carried.
  struct Offender {
    ByteView bytes;         ///< the inner packet, or the whole Ethernet frame of a TAP device
    const InnerPacket& ip;  ///< the parsed IP packet
    size_t ipOffset = 0;    ///< where the IP packet begins in `bytes`
    size_t peer = kNoPeer;  ///< position of the peer that it was for
  };

  /// `pool` must outlive this object.
  explicit IcmpErrors(PacketPool& pool) : pool_(pool) {}

  /// Builds an error that packets may have at most `mtu` bytes, IP header included. Empty: the rate
  /// limit or the rules for ICMP forbid an error.
  Packet tooBig(const Offender& offender, size_t mtu, Time now);
  /// Builds an error that the destination cannot be reached. Empty: as for tooBig().
  Packet unreachable(const Offender& offender, Unreachable why, Time now);

 private:
  static constexpr size_t kBuckets = 256;
  struct Cause {
    std::array<TokenBucket, kBuckets> each;
    TokenBucket all;
  };

  bool mayAnswer(Cause& cause, const Offender& offender, Time now);

  PacketPool& pool_;
  Cause tooBig_;
  std::array<Cause, static_cast<size_t>(Unreachable::kProhibited) + 1> unreachable_;
};

}  // namespace braid
