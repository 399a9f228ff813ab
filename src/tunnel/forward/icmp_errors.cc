#include "tunnel/forward/icmp_errors.h"

#include <algorithm>

#include "base/random.h"

namespace braid {

namespace {
constexpr size_t kMac = 6;
constexpr size_t kEthernetHeader = 14;

// Puts the offender's link header in front of the answer, with source and destination exchanged. On
// a TUN device there is no link header, and the answer stays as it is.
Packet turnedRound(Packet answer, ByteView offender, size_t ipOffset) {
  if (!answer || ipOffset < kEthernetHeader) return answer;
  uint8_t* header = answer.prepend(ipOffset);
  std::copy_n(offender.begin() + kMac, kMac, header);
  std::copy_n(offender.begin(), kMac, header + kMac);
  std::copy_n(offender.begin() + 2 * kMac, ipOffset - 2 * kMac, header + 2 * kMac);
  return answer;
}
}  // namespace

Packet IcmpErrors::tooBig(const Offender& offender, size_t mtu, Time now) {
  if (!mayAnswer(tooBig_, offender, now)) return {};
  ByteView packet = offender.bytes.subspan(offender.ipOffset);
  return turnedRound(buildTooBig(pool_, packet, static_cast<uint16_t>(mtu)), offender.bytes,
                     offender.ipOffset);
}

Packet IcmpErrors::unreachable(const Offender& offender, Unreachable why, Time now) {
  if (!mayAnswer(unreachable_[static_cast<size_t>(why)], offender, now)) return {};
  ByteView packet = offender.bytes.subspan(offender.ipOffset);
  return turnedRound(buildUnreachable(pool_, packet, why), offender.bytes, offender.ipOffset);
}

// The hash has no key: a host that spoofs others' source addresses can use up their token buckets
// anyway, without searching for collisions.
bool IcmpErrors::mayAnswer(Cause& cause, const Offender& offender, Time now) {
  uint64_t hash = offender.peer;
  const Address& host = offender.ip.src;
  for (size_t i = 0; i < host.bytes.size(); i += 8)
    hash = Random(hash ^ load64(&host.bytes[i])).next();
  return cause.each[hash % kBuckets].take(kEach, now) && cause.all.take(kAll, now);
}

}  // namespace braid
