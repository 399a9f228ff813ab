#include "inet/inner_packet.h"

#include "inet/ip.h"

namespace braid {

namespace {

bool beginsWithPorts(uint8_t protocol) {
  return protocol == ip::kTcp || protocol == ip::kUdp || protocol == ip::kUdpLite ||
         protocol == ip::kSctp || protocol == ip::kDccp;
}

void setTrafficClass(InnerPacket& p, uint8_t trafficClass) {
  p.ecn = static_cast<Ecn>(trafficClass & 3);
  p.dscp = trafficClass >> 2;
}

bool parseV4(ByteView b, InnerPacket& p) {
  if (b.size() < ip::kV4Header) return false;
  size_t header = size_t{b[0] & 0x0fu} * 4;
  p.size = load16(&b[ip::kV4TotalLength]);
  if (header < ip::kV4Header || header > p.size || p.size > b.size()) return false;
  setTrafficClass(p, b[1]);
  uint16_t fragment = load16(&b[ip::kV4Fragment]);
  p.dontFragment = fragment & ip::kV4DontFragment;
  p.isFragment = fragment & (ip::kV4MoreFragments | ip::kV4FragmentOffset);
  p.isFirstFragment = p.isFragment && (fragment & ip::kV4FragmentOffset) == 0;
  p.hopLimit = b[8];
  p.protocol = b[9];
  p.src = Address::v4(b.subspan(12, 4));
  p.dst = Address::v4(b.subspan(16, 4));
  p.l4Offset = static_cast<uint32_t>(header);
  return true;
}

/// An extension header whose second byte is its length (RFC 8200 section 4, RFC 7045 section 2.2).
bool isSizedExtension(uint8_t header) {
  switch (header) {
    case ip::kHopByHop:
    case ip::kRouting:
    case ip::kAuthentication:
    case ip::kDestinationOptions:
    case ip::kMobility:
    case ip::kHip:
    case ip::kShim6:
      return true;
    default:
      return false;
  }
}

/// Moves p.protocol and p.l4Offset past the extension headers; b ends where the packet ends.
bool walkExtensions(ByteView b, InnerPacket& p) {
  for (int n = 0; isSizedExtension(p.protocol) || p.protocol == ip::kFragment; ++n) {
    if (n == kMaxExtensionHeaders || b.size() - p.l4Offset < 8) return false;
    const uint8_t* header = &b[p.l4Offset];
    if (p.protocol == ip::kFragment) {
      uint16_t offset = header[2] << 5 | header[3] >> 3;
      p.isFragment |= offset != 0 || header[3] & 1;
      p.isFirstFragment = p.isFragment && offset == 0;
      p.l4Offset += 8;
    } else {
      uint32_t length =
          p.protocol == ip::kAuthentication ? (header[1] + 2u) * 4 : (header[1] + 1u) * 8;
      if (length > b.size() - p.l4Offset) return false;
      p.l4Offset += length;
    }
    p.protocol = header[0];
    if (p.isLaterFragment()) return true;
  }
  return true;
}

bool parseV6(ByteView b, InnerPacket& p) {
  if (b.size() < ip::kV6Header) return false;
  p.size = static_cast<uint32_t>(ip::kV6Header) + load16(&b[4]);
  if (p.size > b.size()) return false;
  setTrafficClass(p, static_cast<uint8_t>(load16(&b[0]) >> 4));
  p.dontFragment = true;
  p.protocol = b[6];
  p.hopLimit = b[7];
  p.src = Address::v6(b.subspan(8, 16));
  p.dst = Address::v6(b.subspan(24, 16));
  p.l4Offset = static_cast<uint32_t>(ip::kV6Header);
  return walkExtensions(b.first(p.size), p);
}

void parseTcp(ByteView l4, InnerPacket& p) {
  if (l4.size() < ip::kTcpHeader) return;
  auto header = static_cast<uint16_t>((l4[12] >> 4) * 4);
  if (header < ip::kTcpHeader || header > l4.size()) return;
  p.payloadLength = p.l4Length - header;
  TcpFields& tcp = p.tcp.emplace();
  tcp.seq = load32(&l4[4]);
  tcp.ack = load32(&l4[8]);
  tcp.headerLength = header;
  tcp.flags = l4[13];
  tcp.window = load16(&l4[14]);
  tcp.payloadLength = p.payloadLength;
}

void parseTransport(ByteView l4, InnerPacket& p) {
  p.l4Length = p.payloadLength = static_cast<uint32_t>(l4.size());
  if (p.isLaterFragment() || !beginsWithPorts(p.protocol) || l4.size() < 4) return;
  p.hasPorts = true;
  p.sport = load16(&l4[0]);
  p.dport = load16(&l4[2]);
  if (p.protocol == ip::kTcp && !p.isFragment) parseTcp(l4, p);
  bool isUdp = p.protocol == ip::kUdp || p.protocol == ip::kUdpLite;
  if (isUdp && l4.size() >= ip::kUdpHeader) p.payloadLength -= ip::kUdpHeader;
}

}  // namespace

FlowKey InnerPacket::flowKey() const {
  if (isFragment) return {src.family, protocol, 0, 0, src.bytes, dst.bytes};
  return {src.family, protocol, sport, dport, src.bytes, dst.bytes};
}

std::optional<InnerPacket> parseInnerPacket(ByteView packet) {
  // Fills the return value in place. Copying a struct that was just written byte by byte would
  // stall until those writes have completed.
  std::optional<InnerPacket> out;
  if (packet.empty()) return out;
  InnerPacket& p = out.emplace();
  unsigned version = ip::version(packet.data());
  bool ok = version == 4 ? parseV4(packet, p) : version == 6 && parseV6(packet, p);
  if (ok) {
    parseTransport(packet.subspan(p.l4Offset, p.size - p.l4Offset), p);
  } else {
    out.reset();
  }
  return out;
}

}  // namespace braid
