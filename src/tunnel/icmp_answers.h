#pragma once

#include <cstddef>
#include <cstdint>

#include "base/packet.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "inet/icmp.h"
#include "inet/inner_packet.h"

namespace braid {

/// ICMP errors to local hosts whose packets the tunnel cannot carry, as many as RFC 1812 section 4.3.2.8
/// lets a router send.
///
/// Each packet given back is for the device. `offender` is the inner packet, or the whole Ethernet frame of a
/// TAP device; the IP packet begins `ipOffset` bytes into it and `ip` is what it was parsed to. For a frame
/// the answer is a frame back to its sender, with the same VLAN tags.
class IcmpAnswers {
 public:
  /// ICMP errors per second, and at once after a pause (RFC 1812 section 4.3.2.8 asks for a bound). Ours.
  static constexpr double kRate = 100;
  static constexpr double kBurst = 50;

  /// `pool` must outlive this object.
  explicit IcmpAnswers(PacketPool& pool) : pool_(pool) {}

  /// Addresses that the errors come from; an unset one: the destination of the packet that is answered.
  void setOwnAddresses(const Address& v4, const Address& v6);

  /// Says that packets must be at most `mtu` bytes, IP header included. Empty: no answer may be sent now.
  Packet tooBig(ByteView offender, const InnerPacket& ip, size_t ipOffset, size_t mtu, Time now);
  /// Says that the packet cannot get there. Empty: no answer may be sent now.
  Packet unreachable(ByteView offender, const InnerPacket& ip, size_t ipOffset, Unreachable why, Time now);

 private:
  bool mayAnswer(Time now);
  Address sourceFor(const InnerPacket& offender) const;

  PacketPool& pool_;
  Address own4_, own6_;
  double tokens_ = kBurst;
  Time countedAt_ = Time::min();  ///< when tokens_ were last counted; Time::min(): never
};

}  // namespace braid
