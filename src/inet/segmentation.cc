#include "inet/segmentation.h"

#include <algorithm>
#include <optional>

#include "inet/frame.h"
#include "inet/inner_packet.h"
#include "inet/ip.h"

namespace braid {

std::optional<PacketSegmenter> PacketSegmenter::of(ByteView packet, size_t linkHeader,
                                                   size_t payload) {
  if (payload == 0 || packet.size() < linkHeader) return std::nullopt;
  std::optional<InnerPacket> ip = parseInnerPacket(packet.subspan(linkHeader));
  bool isUdp = ip && !ip->isFragment && ip->protocol == ip::kUdp && ip->l4Length > ip::kUdpHeader;
  if (!ip || !(ip->tcp || isUdp) || ip->payloadLength == 0) return std::nullopt;
  PacketSegmenter segments;
  segments.linkHeader_ = linkHeader;
  segments.headers_ =
      packet.first(linkHeader + ip->l4Offset + (ip->tcp ? ip->tcp->headerLength : ip::kUdpHeader));
  segments.data_ = packet.subspan(segments.headers_.size(), ip->payloadLength);
  segments.payload_ = payload;
  segments.ip_ = *ip;
  if (segments.count() > kMost) return std::nullopt;
  return segments;
}

size_t PacketSegmenter::nextPayload() const {
  return std::min(payload_, data_.size() - offset_);
}

void PacketSegmenter::write(uint8_t* out) {
  size_t payload = nextPayload();
  uint8_t* ip =
      std::copy(headers_.begin(), headers_.begin() + static_cast<ptrdiff_t>(linkHeader_), out);
  uint8_t* end =
      std::copy(headers_.begin() + static_cast<ptrdiff_t>(linkHeader_), headers_.end(), ip);
  ByteView data = data_.subspan(offset_, payload);
  std::copy(data.begin(), data.end(), end);
  uint8_t* l4 = ip + ip_.l4Offset;
  auto length = static_cast<size_t>(end - l4) + payload;
  writeIp(ip, ip_.l4Offset + length);
  if (ip_.tcp) {
    writeTcp(l4);
  } else {
    store16(l4 + ip::kUdpLength, static_cast<uint16_t>(length));
  }
  uint8_t* checksum = l4 + (ip_.tcp ? ip::kTcpChecksum : ip::kUdpChecksum);
  uint16_t ofWhole = load16(checksum);
  store16(checksum, 0);
  uint16_t sum = checksumOf({l4, length}, ofWhole);
  store16(checksum, sum == 0 && !ip_.tcp ? 0xffff : sum);  // RFC 768: 0 means no checksum
  offset_ += payload;
}

// `ofWhole`: the checksum field of the whole packet, which holds the sum of its pseudo header. With
// IPv6 extension headers the pseudo header can be taken only from there: with a Routing header its
// destination is not the one in the IP header (RFC 8200 section 8.1).
uint16_t PacketSegmenter::checksumOf(ByteView segment, uint16_t ofWhole) const {
  if (!ip_.isV6() || ip_.l4Offset == ip::kV6Header)
    return transportChecksum(ip_.src, ip_.dst, ip_.protocol, segment);
  auto lessWhole = static_cast<uint16_t>(~ip_.l4Length);
  return static_cast<uint16_t>(~foldSum(sumBytes(segment) + ofWhole + lessWhole + segment.size()));
}

void PacketSegmenter::writeIp(uint8_t* ip, size_t length) const {
  if (ip_.isV6())
    return store16(ip + ip::kV6PayloadLength, static_cast<uint16_t>(length - ip::kV6Header));
  store16(ip + ip::kV4TotalLength, static_cast<uint16_t>(length));
  uint16_t first = load16(ip + ip::kV4Identification);
  store16(ip + ip::kV4Identification, static_cast<uint16_t>(first + offset_ / payload_));
  store16(ip + ip::kV4Checksum, 0);
  store16(ip + ip::kV4Checksum, internetChecksum({ip, ip_.l4Offset}));
}

void PacketSegmenter::writeTcp(uint8_t* tcp) const {
  store32(tcp + ip::kTcpSequence, ip_.tcp->seq + static_cast<uint32_t>(offset_));
  bool isFirst = offset_ == 0;
  bool isLast = offset_ + nextPayload() == data_.size();
  if (!isFirst) tcp[ip::kTcpFlags] &= static_cast<uint8_t>(~TcpFields::kCwr);
  if (!isLast) tcp[ip::kTcpFlags] &= static_cast<uint8_t>(~(TcpFields::kFin | TcpFields::kPsh));
}

bool completeChecksum(ByteSpan packet, size_t start, size_t offset) {
  if (start > packet.size() || packet.size() - start < offset + 2) return false;
  uint16_t sum = static_cast<uint16_t>(~foldSum(sumBytes(packet.subspan(start))));
  store16(packet.data() + start + offset, sum == 0 ? 0xffff : sum);
  return true;
}

namespace {

bool isEqual(ByteView a, ByteView b, size_t from, size_t to) {
  return std::equal(a.begin() + static_cast<ptrdiff_t>(from),
                    a.begin() + static_cast<ptrdiff_t>(to),
                    b.begin() + static_cast<ptrdiff_t>(from));
}

// The addresses of the pseudo header are summed where they are, in the IP header.
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

// Whether this is a whole datagram with payload and with a checksum. Without a checksum it cannot
// be merged, because the kernel would give a checksum to each datagram that it makes.
bool isDatagram(ByteView udp) {
  return udp.size() > ip::kUdpHeader && load16(&udp[ip::kUdpLength]) == udp.size() &&
         load16(&udp[ip::kUdpChecksum]) != 0;
}

// Whether the flags are those of a segment that only carries payload: ACK, perhaps PSH.
bool arePlain(uint8_t flags) {
  return (flags & ~TcpFields::kPsh) == TcpFields::kAck;
}

// The length of the packet according to its IP header.
size_t statedLength(ByteView ip, size_t ipHeader) {
  return ipHeader == ip::kV4Header ? load16(&ip[ip::kV4TotalLength])
                                   : load16(&ip[ip::kV6PayloadLength]) + ip::kV6Header;
}

// Whether the EtherType of a frame says that it holds an IP packet of this version. A payload that
// only looks like one, for example a VLAN tag followed by other bytes, must not be merged: finish()
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
    // Compared are version and TOS, the identification unless the packet is atomic (RFC 6864
    // section 4), and the rest except the checksum.
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

// Whether `b` is the next segment of the run that begins with `a`, judged by the TCP headers.
bool PacketRun::isNextSegment(ByteView a, ByteView b) const {
  // Must be equal: acknowledgment and header length; window; urgent pointer and options.
  if (!isEqual(a, b, 8, 13) || !isEqual(a, b, 14, 16) || !isEqual(a, b, 18, headers_ - l4Offset()))
    return false;
  return arePlain(b[ip::kTcpFlags]) &&
         load32(&b[ip::kTcpSequence]) ==
             load32(&a[ip::kTcpSequence]) + static_cast<uint32_t>(bytes_);
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
