#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/packet.h"
#include "base/ration.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "inet/icmp.h"
#include "inet/inner_packet.h"

namespace braid {

/// ICMP errors to local hosts whose packets the tunnel cannot carry, as many as RFC 1812 section 4.3.2.8
/// lets a router send. A host that makes many does not take those of others, nor those about another peer or for
/// another cause: path MTU discovery goes on beside a scan of addresses that nobody has.
///
/// Each packet given back is for the device, and comes from where the packet that is answered was to go. For a frame
/// the answer is a frame back to its sender, with the same VLAN tags.
class IcmpAnswers {
 public:
  /// Errors to one host, for one cause and about one peer (RFC 1812 section 4.3.2.8 asks for a bound). Hosts and
  /// peers that fall into one bucket share it. Ours.
  static constexpr Allowance kEach{50, 10ms};
  /// Errors for one cause to all hosts. Ours.
  static constexpr Allowance kAll{500, 1ms};
  /// `Offender::peer` of a packet that is for none.
  static constexpr size_t kNoPeer = SIZE_MAX;

  /// A packet that cannot be carried.
  struct Offender {
    ByteView bytes;         ///< the inner packet, or the whole Ethernet frame of a TAP device
    const InnerPacket& ip;  ///< what it was parsed to
    size_t ipOffset = 0;    ///< where in `bytes` the IP packet begins
    size_t peer = kNoPeer;  ///< number of the peer that it was for
  };

  /// `pool` must outlive this object.
  explicit IcmpAnswers(PacketPool& pool) : pool_(pool) {}

  /// Says that packets must be at most `mtu` bytes, IP header included. Empty: no answer may be sent now.
  Packet tooBig(const Offender& offender, size_t mtu, Time now);
  /// Says that the packet cannot get there. Empty: no answer may be sent now.
  Packet unreachable(const Offender& offender, Unreachable why, Time now);

 private:
  static constexpr size_t kBuckets = 256;
  struct Cause {
    std::array<Ration, kBuckets> each;
    Ration all;
  };

  bool mayAnswer(Cause& cause, const Offender& offender, Time now);

  PacketPool& pool_;
  Cause tooBig_;
  std::array<Cause, static_cast<size_t>(Unreachable::kProhibited) + 1> unreachable_;
};

}  // namespace braid
