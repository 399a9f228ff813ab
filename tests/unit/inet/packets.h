#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "inet/addresses.h"
#include "inet/inner_packet.h"
#include "inet/ip.h"

/// Builders of inner packets for tests. Checksums are right unless a test breaks them.
namespace braid::test {

using Bytes = std::vector<uint8_t>;

inline Address addr(std::string_view text) {
  return Address::parse(text).value();
}

inline void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// n bytes that differ from one another.
inline Bytes pattern(size_t n) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i) b[i] = static_cast<uint8_t>(i * 7 + 3);
  return b;
}

struct V4 {
  const char* src = "10.0.0.1";
  const char* dst = "10.0.0.2";
  uint8_t protocol = ip::kUdp;
  uint8_t tos = 0;
  uint16_t fragment = 0;  ///< the fragment field: flags and offset
  Bytes options = {};
};

inline void fixV4Checksum(Bytes& packet) {
  size_t header = size_t{packet[0] & 0x0fu} * 4;
  store16(&packet[10], 0);
  store16(&packet[10], internetChecksum(ByteView(packet).first(header)));
}

inline Bytes v4(const V4& h, const Bytes& payload) {
  Bytes b(20);
  size_t header = 20 + h.options.size();
  b[0] = static_cast<uint8_t>(0x40 | header / 4);
  b[1] = h.tos;
  store16(&b[2], static_cast<uint16_t>(header + payload.size()));
  store16(&b[4], 0x1234);
  store16(&b[6], h.fragment);
  b[8] = 64;
  b[9] = h.protocol;
  Address src = addr(h.src), dst = addr(h.dst);
  std::copy_n(src.bytes.begin(), 4, &b[12]);
  std::copy_n(dst.bytes.begin(), 4, &b[16]);
  append(b, h.options);
  fixV4Checksum(b);
  append(b, payload);
  return b;
}

struct V6 {
  const char* src = "2001:db8::1";
  const char* dst = "2001:db8::2";
  uint8_t nextHeader = ip::kUdp;
  uint8_t trafficClass = 0;
};

inline Bytes v6(const V6& h, const Bytes& payload) {
  Bytes b(40);
  store32(&b[0], 0x60000000 | uint32_t{h.trafficClass} << 20 | 0xabcde);
  store16(&b[4], static_cast<uint16_t>(payload.size()));
  b[6] = h.nextHeader;
  b[7] = 63;
  Address src = addr(h.src), dst = addr(h.dst);
  std::copy(src.bytes.begin(), src.bytes.end(), &b[8]);
  std::copy(dst.bytes.begin(), dst.bytes.end(), &b[24]);
  append(b, payload);
  return b;
}

inline Bytes udp(uint16_t sport, uint16_t dport, const Bytes& payload) {
  Bytes b(8);
  store16(&b[0], sport);
  store16(&b[2], dport);
  store16(&b[4], static_cast<uint16_t>(8 + payload.size()));
  append(b, payload);
  return b;
}

struct Tcp {
  uint16_t sport = 443;
  uint16_t dport = 5000;
  uint32_t seq = 0x01020304;
  uint8_t flags = TcpFields::kAck;
  Bytes options = {};  ///< a multiple of 4 bytes
  Bytes payload = {};
};

/// The checksum field is zero: tcpV4() and tcpV6() fill it.
inline Bytes tcp(const Tcp& h) {
  Bytes b(20);
  store16(&b[0], h.sport);
  store16(&b[2], h.dport);
  store32(&b[4], h.seq);
  store32(&b[8], 0x0a0b0c0d);
  b[12] = static_cast<uint8_t>((20 + h.options.size()) / 4 << 4);
  b[13] = h.flags;
  store16(&b[14], 4096);
  append(b, h.options);
  append(b, h.payload);
  return b;
}

inline Bytes withTcpChecksum(Bytes segment, const char* src, const char* dst) {
  store16(&segment[16], transportChecksum(addr(src), addr(dst), ip::kTcp, segment));
  return segment;
}

inline Bytes tcpV4(const Tcp& h, uint8_t tos = 0) {
  V4 outer{.protocol = ip::kTcp, .tos = tos, .fragment = ip::kV4DontFragment};
  return v4(outer, withTcpChecksum(tcp(h), outer.src, outer.dst));
}

inline Bytes tcpV6(const Tcp& h, uint8_t trafficClass = 0) {
  V6 outer{.nextHeader = ip::kTcp, .trafficClass = trafficClass};
  return v6(outer, withTcpChecksum(tcp(h), outer.src, outer.dst));
}

inline bool v4ChecksumValid(ByteView packet) {
  return foldSum(sumBytes(packet.first(size_t{packet[0] & 0x0fu} * 4))) == 0xffff;
}

/// The checksum of the TCP, UDP or ICMPv6 segment of a well-formed packet.
inline bool transportChecksumValid(ByteView packet) {
  InnerPacket p = parseInnerPacket(packet).value();
  ByteView segment = packet.subspan(p.l4Offset, p.l4Length);
  return foldSum(sumBytes(segment, pseudoHeaderSum(p.src, p.dst, p.protocol, p.l4Length))) ==
         0xffff;
}

}  // namespace braid::test
