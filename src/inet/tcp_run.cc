#include "inet/tcp_run.h"

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
bool isTcpValid(ByteView ip, size_t ipHeader) {
  size_t length = ip.size() - ipHeader;
  ByteView addresses = ipHeader == ip::kV4Header ? ip.subspan(12, 8) : ip.subspan(8, 32);
  return foldSum(sumBytes(ip.subspan(ipHeader), sumBytes(addresses) + ip::kTcp + length)) == 0xffff;
}

bool isHeaderValid(ByteView ip, size_t ipHeader) {
  return ipHeader != ip::kV4Header || foldSum(sumBytes(ip.first(ipHeader))) == 0xffff;
}

bool isValid(ByteView ip, size_t ipHeader) {
  return isHeaderValid(ip, ipHeader) && isTcpValid(ip, ipHeader);
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

bool TcpRun::begin(ByteView packet) {
  clear();
  if (packet.size() < linkHeader_) return false;
  ByteView bytes = packet.subspan(linkHeader_);
  std::optional<InnerPacket> ip = parseInnerPacket(bytes);
  if (!ip || !ip->tcp || ip->isFragment || ip->tcp->payloadLength == 0 || ip->size != bytes.size())
    return false;
  if (!isNamedSo(packet, linkHeader_, ip->isV4())) return false;
  if (ip->l4Offset != (ip->isV4() ? ip::kV4Header : ip::kV6Header)) return false;
  if ((ip->tcp->flags & ~TcpFields::kPsh) != TcpFields::kAck) return false;
  first_ = packet;
  ipHeader_ = ip->l4Offset;
  headers_ = tcpOffset() + ip->tcp->headerLength;
  payload_ = bytes_ = ip->tcp->payloadLength;
  push_ = ended_ = ip->tcp->flags & TcpFields::kPsh;
  count_ = 1;
  return true;
}

bool TcpRun::isLike(ByteView packet) const {
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
  // Ports; acknowledgment, header length; window; urgent pointer and options.
  a = a.subspan(ipHeader_), b = b.subspan(ipHeader_);
  size_t end = headers_ - tcpOffset();
  if (!isEqual(a, b, 0, 4) || !isEqual(a, b, 8, 13) || !isEqual(a, b, 14, 16) || !isEqual(a, b, 18, end))
    return false;
  if ((b[ip::kTcpFlags] & ~TcpFields::kPsh) != TcpFields::kAck) return false;
  return load32(&b[ip::kTcpSequence]) == load32(&a[ip::kTcpSequence]) + static_cast<uint32_t>(bytes_);
}

bool TcpRun::extend(ByteView packet) {
  if (ended_ || count_ == kMost || packet.size() <= headers_) return false;
  size_t payload = packet.size() - headers_;
  if (payload > payload_ || headers_ + bytes_ + payload > kMostBytes) return false;
  if (!isLike(packet)) return false;
  ByteView ip = packet.subspan(linkHeader_);
  if (statedLength(ip, ipHeader_) != ip.size()) return false;
  if (!isValid(ip, ipHeader_)) return false;
  if (count_ == 1 && !isValid(first_.subspan(linkHeader_), ipHeader_)) {
    ended_ = true;
    return false;
  }
  push_ = packet[tcpOffset() + ip::kTcpFlags] & TcpFields::kPsh;
  ended_ = push_ || payload < payload_;
  bytes_ += payload;
  ++count_;
  return true;
}

TcpOffload TcpRun::finish(ByteSpan first) const {
  uint8_t* ip = first.data() + linkHeader_;
  uint8_t* tcp = first.data() + tcpOffset();
  bool isV6 = ipHeader_ == ip::kV6Header;
  size_t length = headers_ - tcpOffset() + bytes_;
  if (isV6) {
    store16(ip + ip::kV6PayloadLength, static_cast<uint16_t>(length));
  } else {
    store16(ip + ip::kV4TotalLength, static_cast<uint16_t>(ipHeader_ + length));
    store16(ip + ip::kV4Checksum, 0);
    store16(ip + ip::kV4Checksum, internetChecksum({ip, ipHeader_}));
  }
  if (push_) tcp[ip::kTcpFlags] |= TcpFields::kPsh;
  ByteView addresses = isV6 ? ByteView(ip + 8, 32) : ByteView(ip + 12, 8);
  store16(tcp + ip::kTcpChecksum, foldSum(sumBytes(addresses) + ip::kTcp + length));
  TcpOffload offload;
  offload.isV6 = isV6;
  offload.headers = static_cast<uint16_t>(headers_);
  offload.payload = static_cast<uint16_t>(payload_);
  offload.checksumStart = static_cast<uint16_t>(tcpOffset());
  return offload;
}

}  // namespace braid
