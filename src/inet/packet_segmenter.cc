#include "inet/packet_segmenter.h"

#include <algorithm>

#include "inet/checksum.h"
#include "inet/protocol.h"

namespace braid {

std::optional<PacketSegmenter> PacketSegmenter::of(ByteView packet, size_t linkHeader, size_t payload) {
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
  uint8_t* ip = std::copy(headers_.begin(), headers_.begin() + static_cast<ptrdiff_t>(linkHeader_), out);
  uint8_t* end = std::copy(headers_.begin() + static_cast<ptrdiff_t>(linkHeader_), headers_.end(), ip);
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
  store16(checksum, sum == 0 && !ip_.tcp ? 0xffff : sum);  // RFC 768: 0 says that there is none
  offset_ += payload;
}

// `ofWhole`: what the whole packet has in the field, the sum of its pseudo header. Behind extension headers that is all
// one can know: with a Routing header the address in it is not the IP header's (RFC 8200 section 8.1).
uint16_t PacketSegmenter::checksumOf(ByteView segment, uint16_t ofWhole) const {
  if (!ip_.isV6() || ip_.l4Offset == ip::kV6Header)
    return transportChecksum(ip_.src, ip_.dst, ip_.protocol, segment);
  auto lessWhole = static_cast<uint16_t>(~ip_.l4Length);
  return static_cast<uint16_t>(~foldSum(sumBytes(segment) + ofWhole + lessWhole + segment.size()));
}

void PacketSegmenter::writeIp(uint8_t* ip, size_t length) const {
  if (ip_.isV6()) return store16(ip + ip::kV6PayloadLength, static_cast<uint16_t>(length - ip::kV6Header));
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

}  // namespace braid
