#include "tunnel/icmp_answers.h"

#include <algorithm>

namespace braid {

namespace {
constexpr size_t kMac = 6;
constexpr size_t kEthernetHeader = 14;

// Puts the offender's link header in front of the answer, with source and destination exchanged. Without a
// link header, on a TUN device, there is nothing to do.
Packet turnedRound(Packet answer, ByteView offender, size_t ipOffset) {
  if (!answer || ipOffset < kEthernetHeader) return answer;
  uint8_t* header = answer.prepend(ipOffset);
  std::copy_n(offender.begin() + kMac, kMac, header);
  std::copy_n(offender.begin(), kMac, header + kMac);
  std::copy_n(offender.begin() + 2 * kMac, ipOffset - 2 * kMac, header + 2 * kMac);
  return answer;
}
}  // namespace

void IcmpAnswers::setOwnAddresses(const Address& v4, const Address& v6) {
  own4_ = v4;
  own6_ = v6;
}

Packet IcmpAnswers::tooBig(ByteView offender, const InnerPacket& ip, size_t ipOffset, size_t mtu, Time now) {
  if (!mayAnswer(now)) return {};
  ByteView packet = offender.subspan(ipOffset);
  return turnedRound(buildTooBig(pool_, packet, sourceFor(ip), static_cast<uint16_t>(mtu)), offender,
                     ipOffset);
}

Packet IcmpAnswers::unreachable(ByteView offender, const InnerPacket& ip, size_t ipOffset, Unreachable why,
                                Time now) {
  if (!mayAnswer(now)) return {};
  ByteView packet = offender.subspan(ipOffset);
  return turnedRound(buildUnreachable(pool_, packet, sourceFor(ip), why), offender, ipOffset);
}

// A token bucket.
bool IcmpAnswers::mayAnswer(Time now) {
  if (countedAt_ != Time::min()) tokens_ = std::min(kBurst, tokens_ + toSeconds(now - countedAt_) * kRate);
  countedAt_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

Address IcmpAnswers::sourceFor(const InnerPacket& offender) const {
  const Address& own = offender.isV4() ? own4_ : own6_;
  return own.family == Address::Family::kNone ? offender.dst : own;
}

}  // namespace braid
