#include "inet/packet_run.h"

#include <algorithm>
#include <optional>

#include "inet/checksum.h"
#include "inet/frame.h"
#include "inet/inner_packet.h"
#include "inet/protocol.h"

namespace braid {

namespace {

bool isEqual(ByteView a, ByteView b, size_t from, size_t to) {
  return std::equal(a.begin() + static_cast<ptrdiff_t>(from), a.begin() + static_cast<ptrdiff_t>(to),
                    b.begin() + static_cast<ptrdiff_t>(from));
}

// The addresses' part of the pseudo header is summed where it stands.
bool isTransportValid(ByteView ip, size_t ipHeader, uint8_t protocol) {
  size_t length = ip.size() - ipHeader;
  ByteView addresses = ipHeader == ip::kV4Header ? ip.subspan(12, 8) : ip.subspan(8, 32);
  return foldSum(sumBytes(ip.subspan(ipHeader), sumBytes(addresses) + protocol + length)) == 0xffff;
}

bool isHeaderValid(ByteView ip, size_t ipHeader) {
  return ipHeader != ip::kV4Header || foldSum(sumBytes(ip.first(ipHeader))) == 0xffff;
}

bool isValid(ByteView ip, size_t ipHeader, uint8_t protocol) {
  return isHeaderValid(ip, ipHeader) && isTransportValid(ip, ipHeader, protocol);
}

// A whole datagram with payload, and with a checksum: the kernel would give one to each that it makes.
bool isDatagram(ByteView udp) {
  return udp.size() > ip::kUdpHeader && load16(&udp[ip::kUdpLength]) == udp.size() &&
         load16(&udp[ip::kUdpChecksum]) != 0;
}

// Flags of a segment that only carries payload.
bool arePlain(uint8_t flags) {
  return (flags & ~TcpFields::kPsh) == TcpFields::kAck;
}

// What the IP header says of the packet's length.
size_t statedLength(ByteView ip, size_t ipHeader) {
  return ipHeader == ip::kV4Header ? load16(&ip[ip::kV4TotalLength])
                                   : load16(&ip[ip::kV6PayloadLength]) + ip::kV6Header;
}

// A frame names what it holds. What only looks like an IP packet, a VLAN tag with bytes behind it say, is none: finish()
// would write into other fields.
bool isNamedSo(ByteView packet, size_t linkHeader, bool isV4) {
  return linkHeader == 0 || load16(&packet[linkHeader - 2]) == (isV4 ? Frame::kIpV4 : Frame::kIpV6);
}

}  // namespace

bool PacketRun::begin(ByteView packet) {
  clear();
  if (packet.size() < linkHeader_) return false;
  ByteView bytes = packet.subspan(linkHeader_);
  std::optional<InnerPacket> ip = parseInnerPacket(bytes);
  if (!ip || ip->isFragment || ip->size != bytes.size()) return false;
  if (!isNamedSo(packet, linkHeader_, ip->isV4())) return false;
  if (ip->l4Offset != (ip->isV4() ? ip::kV4Header : ip::kV6Header)) return false;
  if (ip->tcp ? ip->tcp->payloadLength == 0 || !arePlain(ip->tcp->flags)
              : !takesUdp_ || ip->protocol != ip::kUdp || !isDatagram(bytes.subspan(ip->l4Offset)))
    return false;
  first_ = packet;
  protocol_ = ip->protocol;
  ipHeader_ = ip->l4Offset;
  headers_ = l4Offset() + (ip->tcp ? ip->tcp->headerLength : ip::kUdpHeader);
  payload_ = bytes_ = packet.size() - headers_;
  push_ = ended_ = ip->tcp && ip->tcp->flags & TcpFields::kPsh;
  count_ = 1;
  return true;
}

bool PacketRun::isLike(ByteView packet) const {
  if (!isEqual(first_, packet, 0, linkHeader_)) return false;
  ByteView a = first_.subspan(linkHeader_), b = packet.subspan(linkHeader_);
  if (ipHeader_ == ip::kV4Header) {
    // Version and TOS; identification unless it means nothing (RFC 6864 section 4); the rest but the checksum.
    if (!isEqual(a, b, 0, 2) || !isEqual(a, b, 6, 10) || !isEqual(a, b, 12, 20)) return false;
    bool isAtomic = load16(&a[ip::kV4Fragment]) & ip::kV4DontFragment;
    uint16_t expected = static_cast<uint16_t>(load16(&a[ip::kV4Identification]) + count_);
    if (!isAtomic && load16(&b[ip::kV4Identification]) != expected) return false;
  } else if (!isEqual(a, b, 0, 4) || !isEqual(a, b, 6, 40)) {
    return false;
  }
  a = a.subspan(ipHeader_), b = b.subspan(ipHeader_);
  if (!isEqual(a, b, 0, 4)) return false;  // ports
  return isTcp() ? isNextSegment(a, b) : isDatagram(b);
}

// By their TCP headers.
bool PacketRun::isNextSegment(ByteView a, ByteView b) const {
  // Acknowledgment, header length; window; urgent pointer and options.
  if (!isEqual(a, b, 8, 13) || !isEqual(a, b, 14, 16) || !isEqual(a, b, 18, headers_ - l4Offset()))
    return false;
  return arePlain(b[ip::kTcpFlags]) &&
         load32(&b[ip::kTcpSequence]) == load32(&a[ip::kTcpSequence]) + static_cast<uint32_t>(bytes_);
}

bool PacketRun::extend(ByteView packet) {
  if (ended_ || count_ == kMost || packet.size() <= headers_) return false;
  size_t payload = packet.size() - headers_;
  if (payload > payload_ || headers_ + bytes_ + payload > kMostBytes) return false;
  if (!isLike(packet)) return false;
  ByteView ip = packet.subspan(linkHeader_);
  if (statedLength(ip, ipHeader_) != ip.size()) return false;
  if (!isValid(ip, ipHeader_, protocol_)) return false;
  if (count_ == 1 && !isValid(first_.subspan(linkHeader_), ipHeader_, protocol_)) {
    ended_ = true;
    return false;
  }
  push_ = isTcp() && packet[l4Offset() + ip::kTcpFlags] & TcpFields::kPsh;
  ended_ = push_ || payload < payload_;
  bytes_ += payload;
  ++count_;
  return true;
}

RunOffload PacketRun::finish(ByteSpan first) const {
  uint8_t* ip = first.data() + linkHeader_;
  uint8_t* l4 = first.data() + l4Offset();
  bool isV6 = ipHeader_ == ip::kV6Header;
  size_t length = headers_ - l4Offset() + bytes_;
  if (isV6) {
    store16(ip + ip::kV6PayloadLength, static_cast<uint16_t>(length));
  } else {
    store16(ip + ip::kV4TotalLength, static_cast<uint16_t>(ipHeader_ + length));
    store16(ip + ip::kV4Checksum, 0);
    store16(ip + ip::kV4Checksum, internetChecksum({ip, ipHeader_}));
  }
  if (push_) l4[ip::kTcpFlags] |= TcpFields::kPsh;
  if (!isTcp()) store16(l4 + ip::kUdpLength, static_cast<uint16_t>(length));
  size_t checksum = isTcp() ? ip::kTcpChecksum : ip::kUdpChecksum;
  ByteView addresses = isV6 ? ByteView(ip + 8, 32) : ByteView(ip + 12, 8);
  store16(l4 + checksum, foldSum(sumBytes(addresses) + protocol_ + length));
  RunOffload offload;
  offload.isV6 = isV6;
  offload.isUdp = !isTcp();
  offload.headers = static_cast<uint16_t>(headers_);
  offload.payload = static_cast<uint16_t>(payload_);
  offload.checksumStart = static_cast<uint16_t>(l4Offset());
  offload.checksumOffset = static_cast<uint16_t>(checksum);
  return offload;
}

std::optional<uint32_t> runNumber(ByteView packet, size_t linkHeader) {
  constexpr size_t kPorts = 4;
  if (packet.size() < linkHeader + ip::kV4Header + kPorts) return std::nullopt;
  const uint8_t* at = packet.data() + linkHeader;
  uint64_t sum = 0;
  uint8_t protocol;
  if (at[0] == 0x45 && (load16(at + ip::kV4Fragment) & ~ip::kV4DontFragment) == 0) {
    protocol = at[9];
    for (size_t i = 12; i < ip::kV4Header + kPorts; i += 4) sum = sum * 31 + load32(at + i);
  } else if (at[0] >> 4 == 6 && packet.size() >= linkHeader + ip::kV6Header + kPorts) {
    protocol = at[6];
    for (size_t i = 8; i < ip::kV6Header + kPorts; i += 4) sum = sum * 31 + load32(at + i);
  } else {
    return std::nullopt;
  }
  if (protocol != ip::kTcp && protocol != ip::kUdp) return std::nullopt;
  return static_cast<uint32_t>(sum * 0x9e3779b97f4a7c15 >> 32);
}

bool mayBeOfSomeRun(ByteView packet, size_t linkHeader) {
  if (packet.size() < linkHeader + ip::kV6Header) return true;
  const uint8_t* at = packet.data() + linkHeader;
  if (at[0] == 0x45 && (load16(at + ip::kV4Fragment) & ~ip::kV4DontFragment) == 0)
    return at[9] == ip::kTcp || at[9] == ip::kUdp;
  return at[0] >> 4 != 6 || (at[6] != ip::kEsp && at[6] != ip::kIcmpV6);
}

}  // namespace braid
