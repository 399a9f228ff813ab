#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/packet.h"
#include "base/random.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "inet/icmp.h"
#include "inet/inner_packet.h"

namespace braid {

/// Makes ICMP errors to hosts whose packets the tunnel cannot carry, or may not, rate-limited as
/// RFC 1812 section 4.3.2.8 asks of a router: to local hosts, and to hosts behind a peer. A host
/// that causes many errors does not use up those of other hosts, nor those about another peer or
/// another cause. So path MTU discovery still works during a scan of unused addresses. A peer can
/// invent hosts; so all hosts behind one peer together have a limit of their own, which is asked
/// first (`Offender::sender`).
///
/// Each returned packet is to be written to the device, or sent to the peer of its host. Its source
/// is the destination of the packet that it answers. For a frame the answer is a frame to its
/// sender, with the same VLAN tags.
class IcmpErrors {
 public:
  /// Limit of errors to one host, for one cause and about one peer (RFC 1812 section 4.3.2.8 asks
  /// for a limit). Hosts and peers with the same hash bucket share it.
  static constexpr RateLimit kEach{50, 10ms};
  /// Limit of errors for one cause to all hosts together.
  static constexpr RateLimit kAll{500, 1ms};
  /// Limit of errors of any cause to all hosts behind one peer together. Chosen: as for one host of
  /// this side.
  static constexpr RateLimit kEachSender = kEach;
  /// `Offender::peer` of a packet that is not for any peer.
  static constexpr size_t kNoPeer = SIZE_MAX;

  /// A packet that cannot be carried.
  struct Offender {
    ByteView bytes;         ///< the inner packet, or the whole Ethernet frame of a TAP device
    const InnerPacket& ip;  ///< the parsed IP packet
    size_t ipOffset = 0;    ///< where the IP packet begins in `bytes`
    size_t peer = kNoPeer;  ///< position of the peer that it was for, or that sent it
    TokenBucket* sender = nullptr;  ///< of the peer that sent it; nullptr: a local host sent it
  };

  /// `pool` must outlive this object.
  explicit IcmpErrors(PacketPool& pool) : pool_(pool) {}

  /// Builds an error that packets may have at most `mtu` bytes, IP header included. Empty: the rate
  /// limit or the rules for ICMP forbid an error.
  Packet tooBig(const Offender& offender, size_t mtu, Time now);
  /// Builds an error that the destination cannot be reached. Empty: as for tooBig().
  Packet unreachable(const Offender& offender, Unreachable why, Time now);

 private:
  static constexpr size_t kMac = 6;
  static constexpr size_t kEthernetHeader = 14;

  /// Puts the offender's link header in front of the answer, with source and destination exchanged.
  /// On a TUN device there is no link header, and the answer stays as it is.
  static Packet turnedRound(Packet answer, ByteView offender, size_t ipOffset) {
    if (!answer || ipOffset < kEthernetHeader) return answer;
    uint8_t* header = answer.prepend(ipOffset);
    std::copy_n(offender.begin() + kMac, kMac, header);
    std::copy_n(offender.begin(), kMac, header + kMac);
    std::copy_n(offender.begin() + 2 * kMac, ipOffset - 2 * kMac, header + 2 * kMac);
    return answer;
  }

  static constexpr size_t kBuckets = 256;
  struct Cause {
    std::array<TokenBucket, kBuckets> each;
    TokenBucket all;
  };

  bool mayAnswer(Cause& cause, const Offender& offender, Time now);

  PacketPool& pool_;
  Cause tooBig_;
  std::array<Cause, static_cast<size_t>(Unreachable::kSource) + 1> unreachable_;
};

inline Packet IcmpErrors::tooBig(const Offender& offender, size_t mtu, Time now) {
  if (!mayAnswer(tooBig_, offender, now)) return {};
  ByteView packet = offender.bytes.subspan(offender.ipOffset);
  return turnedRound(buildTooBig(pool_, packet, static_cast<uint16_t>(mtu)), offender.bytes,
                     offender.ipOffset);
}

inline Packet IcmpErrors::unreachable(const Offender& offender, Unreachable why, Time now) {
  if (!mayAnswer(unreachable_[static_cast<size_t>(why)], offender, now)) return {};
  ByteView packet = offender.bytes.subspan(offender.ipOffset);
  return turnedRound(buildUnreachable(pool_, packet, why), offender.bytes, offender.ipOffset);
}

// The hash has no key: a host that spoofs others' source addresses can use up their token buckets
// anyway, without searching for collisions.
inline bool IcmpErrors::mayAnswer(Cause& cause, const Offender& offender, Time now) {
  if (offender.sender && !offender.sender->take(kEachSender, now)) return false;
  uint64_t hash = offender.peer;
  const Address& host = offender.ip.src;
  for (size_t i = 0; i < host.bytes.size(); i += 8)
    hash = Random(hash ^ load64(&host.bytes[i])).next();
  return cause.each[hash % kBuckets].take(kEach, now) && cause.all.take(kAll, now);
}

}  // namespace braid
