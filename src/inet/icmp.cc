#include "inet/icmp.h"

#include <algorithm>
#include <array>

#include "inet/ip.h"

namespace braid {

namespace {

constexpr size_t kIcmpHeader = 8;  ///< RFC 792, RFC 4443 section 2.1 with the error's second word
constexpr size_t kV4ErrorSize = 576;        ///< RFC 1812 section 4.3.2.3, whole packet
constexpr size_t kV6ErrorSize = 1280;       ///< RFC 4443 section 2.4(c), whole packet
constexpr uint8_t kInternetControl = 0xc0;  ///< precedence 6 (RFC 1812 section 4.3.2.5)
constexpr uint8_t kHopLimit = 64;           ///< IANA's recommended default

// ICMP types (RFC 792, RFC 4443).
constexpr uint8_t kV4Unreachable = 3;
constexpr uint8_t kV4FragmentationNeeded = 4;  ///< a code
constexpr uint8_t kV4TimeExceeded = 11;
constexpr uint8_t kV6Unreachable = 1;
constexpr uint8_t kV6PacketTooBig = 2;
constexpr uint8_t kV6TimeExceeded = 3;
constexpr uint8_t kV6FirstInformation = 128;
constexpr uint8_t kV6Redirect = 137;  ///< RFC 4861 section 4.5

struct IcmpError {
  uint8_t type;
  uint8_t code;
  uint32_t word;  ///< the second word of the ICMP header
};

bool isIcmpError(ByteView offender, const InnerPacket& p) {
  bool isIcmp = p.protocol == (p.isV4() ? ip::kIcmp : ip::kIcmpV6);
  if (!isIcmp) return false;
  if (p.l4Length == 0) return true;  // no type field: may be an error, so do not answer
  uint8_t type = offender[p.l4Offset];
  if (p.isV6()) return type < kV6FirstInformation || type == kV6Redirect;
  // Unreachable, source quench, redirect, time exceeded, parameter problem (RFC 1812
  // section 4.3.1).
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

bool isUnspecifiedOrLoopbackV6(const Address& a) {
  return std::all_of(a.bytes.begin(), a.bytes.end() - 1, [](uint8_t b) { return b == 0; }) &&
         a.bytes[15] <= 1;
}

/// Whether the address is that of a single host, so that it can be the source or destination of an
/// answer.
bool namesHost(const Address& a) {
  uint8_t first = a.bytes[0];
  if (a.isV6()) return first != 0xff && !isUnspecifiedOrLoopbackV6(a);
  return first != 0 && first != 127 && first < 224;
}

bool mayAnswer(ByteView offender, const InnerPacket& p) {
  return !p.isLaterFragment() && namesHost(p.dst) && namesHost(p.src) && !isIcmpError(offender, p);
}

void writeV4Header(uint8_t* b, size_t size, const Address& src, const Address& dst) {
  Writer w({b, ip::kV4Header});
  w.u8(0x45);
  w.u8(kInternetControl);
  w.u16(static_cast<uint16_t>(size));
  w.u16(0);  // identification: unused with DF (RFC 6864 section 4.1)
  w.u16(ip::kV4DontFragment);
  w.u8(kHopLimit);
  w.u8(ip::kIcmp);
  w.u16(0);
  w.bytes(src.view());
  w.bytes(dst.view());
  store16(b + ip::kV4Checksum, internetChecksum({b, ip::kV4Header}));
}

void writeV6Header(uint8_t* b, size_t size, const Address& src, const Address& dst) {
  Writer w({b, ip::kV6Header});
  w.u32(0x60000000);
  w.u16(static_cast<uint16_t>(size - ip::kV6Header));
  w.u8(ip::kIcmpV6);
  w.u8(kHopLimit);
  w.bytes(src.view());
  w.bytes(dst.view());
}

void writeIcmp(ByteSpan icmp, const IcmpError& error, ByteView quote, uint64_t pseudoSum) {
  Writer w(icmp);
  w.u8(error.type);
  w.u8(error.code);
  w.u16(0);
  w.u32(error.word);
  w.bytes(quote);
  store16(&icmp[2], static_cast<uint16_t>(~foldSum(sumBytes(icmp, pseudoSum))));
}

Packet build(PacketPool& pool, ByteView offender, const InnerPacket& p, const IcmpError& error) {
  size_t ipHeader = p.isV4() ? ip::kV4Header : ip::kV6Header;
  size_t limit = std::min(p.isV4() ? kV4ErrorSize : kV6ErrorSize, pool.payload());
  if (limit < ipHeader + kIcmpHeader) return {};
  ByteView quote = offender.first(std::min<size_t>(p.size, limit - ipHeader - kIcmpHeader));
  size_t size = ipHeader + kIcmpHeader + quote.size();

  Packet answer = pool.allocate();
  if (!answer) return {};
  uint8_t* b = answer.append(size);
  ByteSpan icmp{b + ipHeader, size - ipHeader};
  if (p.isV4()) {
    writeV4Header(b, size, p.dst, p.src);
    writeIcmp(icmp, error, quote, 0);
  } else {
    writeV6Header(b, size, p.dst, p.src);
    writeIcmp(icmp, error, quote,
              pseudoHeaderSum(p.dst, p.src, ip::kIcmpV6, static_cast<uint32_t>(icmp.size())));
  }
  return answer;
}

IcmpError unreachable(bool isV4, Unreachable why) {
  uint8_t type = isV4 ? kV4Unreachable : kV6Unreachable;
  switch (why) {
    case Unreachable::kNoRoute:
      return {type, 0, 0};
    case Unreachable::kHost:
      return {type, static_cast<uint8_t>(isV4 ? 1 : 3), 0};
    case Unreachable::kProhibited:
      return {type, static_cast<uint8_t>(isV4 ? 13 : 1), 0};
    case Unreachable::kSource:
      return {type, static_cast<uint8_t>(isV4 ? 13 : 5), 0};
  }
  return {type, 0, 0};
}

/// The ICMP message of a packet, with its whole header; empty: it has none, or is a fragment.
ByteView messageOf(ByteView packet, const InnerPacket& p) {
  bool isWhole = p.protocol == (p.isV4() ? ip::kIcmp : ip::kIcmpV6) && !p.isFragment &&
                 p.l4Length >= kIcmpHeader;
  return isWhole ? packet.subspan(p.l4Offset, p.l4Length) : ByteView{};
}

/// The packet that an error quotes. The end of it is missing, as a rule: what is there is looked at
/// as if it were all.
std::optional<InnerPacket> quotedPacket(ByteView quote) {
  constexpr size_t kMost = 256;           // headers, with many options
  constexpr size_t kV6PayloadLength = 4;  // RFC 8200 section 3
  std::array<uint8_t, kMost> room{};
  ByteSpan begin = ByteSpan(room).first(std::min(quote.size(), kMost));
  std::copy_n(quote.begin(), begin.size(), begin.begin());
  if (begin.size() < ip::kV4Header) return std::nullopt;
  bool v6 = ip::version(begin.data()) == 6;
  if (v6 && begin.size() < ip::kV6Header) return std::nullopt;
  uint8_t* length = begin.data() + (v6 ? kV6PayloadLength : ip::kV4TotalLength);
  size_t present = begin.size() - (v6 ? ip::kV6Header : 0);
  store16(length, static_cast<uint16_t>(std::min<size_t>(load16(length), present)));
  return parseInnerPacket(begin);
}

}  // namespace

Packet buildTooBig(PacketPool& pool, ByteView offender, uint16_t mtu) {
  auto p = parseInnerPacket(offender);
  if (!p || !mayAnswer(offender, *p)) return {};
  IcmpError error = p->isV4() ? IcmpError{kV4Unreachable, kV4FragmentationNeeded, mtu}
                              : IcmpError{kV6PacketTooBig, 0, mtu};
  return build(pool, offender, *p, error);
}

Packet buildUnreachable(PacketPool& pool, ByteView offender, Unreachable why) {
  auto p = parseInnerPacket(offender);
  if (!p || !mayAnswer(offender, *p)) return {};
  return build(pool, offender, *p, unreachable(p->isV4(), why));
}

std::optional<FlowKey> unreachableTcp(ByteView packet) {
  constexpr size_t kV4Protocol = 9, kV6NextHeader = 6;  // RFC 791 section 3.1, RFC 8200 section 3
  if (packet.size() < ip::kV4Header) return std::nullopt;
  const bool v6 = ip::version(packet.data()) == 6;
  if (packet[v6 ? kV6NextHeader : kV4Protocol] != (v6 ? ip::kIcmpV6 : ip::kIcmp))
    return std::nullopt;
  std::optional<InnerPacket> error = parseInnerPacket(packet);
  if (!error) return std::nullopt;
  ByteView message = messageOf(packet, *error);
  if (message.empty() || message[0] != (v6 ? kV6Unreachable : kV4Unreachable)) return std::nullopt;
  if (!v6 && message[1] == kV4FragmentationNeeded) return std::nullopt;
  std::optional<InnerPacket> quoted = quotedPacket(message.subspan(kIcmpHeader));
  bool isTcp = quoted && quoted->isV6() == v6 && quoted->protocol == ip::kTcp && quoted->hasPorts;
  return isTcp ? std::optional(quoted->flowKey()) : std::nullopt;
}

std::optional<FlowKey> flowOfRouterError(ByteView packet, const InnerPacket& error) {
  ByteView message = messageOf(packet, error);
  if (message.empty()) return std::nullopt;
  bool isRouters = error.isV4()
                       ? (message[0] == kV4Unreachable && message[1] == kV4FragmentationNeeded) ||
                             message[0] == kV4TimeExceeded
                       : message[0] == kV6PacketTooBig || message[0] == kV6TimeExceeded;
  if (!isRouters) return std::nullopt;
  std::optional<InnerPacket> quoted = quotedPacket(message.subspan(kIcmpHeader));
  return quoted && quoted->src == error.dst ? std::optional(quoted->flowKey()) : std::nullopt;
}

}  // namespace braid
