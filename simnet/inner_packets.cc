#include "simnet/inner_packets.h"

#include <algorithm>

#include "base/random.h"
#include "inet/ip.h"

namespace braid::sim {

Address address(std::string_view text) {
  return Address::parse(text).value();
}

Bytes ipPacket(const IpFields& f, ByteView segment, size_t checksumAt) {
  size_t header = f.src.isV4() ? ip::kV4Header : ip::kV6Header;
  Bytes b(header + segment.size());
  auto trafficClass = static_cast<uint8_t>(f.dscp << 2 | static_cast<uint8_t>(f.ecn));
  std::copy(segment.begin(), segment.end(), b.begin() + static_cast<ptrdiff_t>(header));
  if (f.src.isV4()) {
    b[0] = 0x45;
    b[1] = trafficClass;
    store16(&b[2], static_cast<uint16_t>(b.size()));
    store16(&b[6], f.dontFragment ? ip::kV4DontFragment : 0);
    b[8] = 64;
    b[9] = f.protocol;
    std::copy_n(f.src.bytes.begin(), 4, &b[12]);
    std::copy_n(f.dst.bytes.begin(), 4, &b[16]);
    store16(&b[10], internetChecksum(ByteView(b).first(header)));
  } else {
    store32(&b[0], 0x60000000 | uint32_t{trafficClass} << 20);
    store16(&b[4], static_cast<uint16_t>(segment.size()));
    b[6] = f.protocol;
    b[7] = 64;
    std::copy(f.src.bytes.begin(), f.src.bytes.end(), &b[8]);
    std::copy(f.dst.bytes.begin(), f.dst.bytes.end(), &b[24]);
  }
  ByteSpan body = ByteSpan(b).subspan(header);
  uint16_t sum = f.protocol == ip::kIcmp ? internetChecksum(body)
                                         : transportChecksum(f.src, f.dst, f.protocol, body);
  if (f.protocol == ip::kUdp && sum == 0) sum = 0xffff;
  store16(&body[checksumAt], sum);
  return b;
}

Bytes tcpPacket(const IpFields& ip, const TcpSegment& t) {
  constexpr uint16_t kTwoNops = tcpopt::kNoOperation << 8 | tcpopt::kNoOperation;
  size_t options = (t.mss ? 4 : 0) + (t.windowShift ? 4 : 0) + (t.sackPermitted ? 4 : 0) +
                   (t.timestamps ? 12 : 0) + (t.sacks.empty() ? 0 : 4 + 8 * t.sacks.size()) +
                   t.otherOptions.size();
  Bytes b(ip::kTcpHeader + options + t.payload.size());
  Writer w(b);
  w.u16(t.sport);
  w.u16(t.dport);
  w.u32(t.seq);
  w.u32(t.ack);
  w.u8(static_cast<uint8_t>((ip::kTcpHeader + options) / 4 << 4));
  w.u8(t.flags);
  w.u16(t.window);
  w.u32(0);  // checksum and urgent pointer
  if (t.mss) {
    w.u8(tcpopt::kMss);
    w.u8(4);
    w.u16(t.mss);
  }
  if (t.windowShift) {
    w.u8(tcpopt::kNoOperation);
    w.u8(tcpopt::kWindowScale);
    w.u8(3);
    w.u8(t.windowShift);
  }
  if (t.sackPermitted) {
    w.u16(kTwoNops);
    w.u8(tcpopt::kSackPermitted);
    w.u8(2);
  }
  if (t.timestamps) {
    w.u16(kTwoNops);
    w.u8(tcpopt::kTimestamps);
    w.u8(10);
    w.u32(t.timestamps->value);
    w.u32(t.timestamps->echo);
  }
  if (!t.sacks.empty()) {
    w.u16(kTwoNops);
    w.u8(tcpopt::kSack);
    w.u8(static_cast<uint8_t>(2 + 8 * t.sacks.size()));
  }
  for (const SeqRange& block : t.sacks) {
    w.u32(block.begin.value);
    w.u32(block.end.value);
  }
  w.bytes(t.otherOptions);
  w.bytes(t.payload);
  return ipPacket(ip, b, ip::kTcpChecksum);
}

Bytes udpPacket(const IpFields& ip, uint16_t sport, uint16_t dport, ByteView payload) {
  Bytes b(8);
  store16(&b[0], sport);
  store16(&b[2], dport);
  store16(&b[4], static_cast<uint16_t>(8 + payload.size()));
  b.insert(b.end(), payload.begin(), payload.end());
  return ipPacket(ip, b, 6);
}

Bytes echoPacket(const IpFields& ip, bool reply, uint16_t id, uint16_t sequence, ByteView payload) {
  Bytes b(8);
  if (ip.protocol == ip::kIcmp)
    b[0] = reply ? 0 : 8;
  else
    b[0] = reply ? 129 : 128;
  store16(&b[4], id);
  store16(&b[6], sequence);
  b.insert(b.end(), payload.begin(), payload.end());
  return ipPacket(ip, b, 2);
}

TcpOptionFields tcpOptionsOf(ByteView packet, const InnerPacket& ip) {
  return parseTcpOptions(packet.subspan(ip.l4Offset, ip.tcp->headerLength).subspan(ip::kTcpHeader));
}

uint16_t mssOf(ByteView packet, const InnerPacket& ip) {
  return tcpOptionsOf(packet, ip).mss.value_or(0);
}

bool checksumsValid(ByteView packet, const InnerPacket& ip) {
  if (ip.isV4() && foldSum(sumBytes(packet.first(size_t{packet[0] & 0x0fu} * 4))) != 0xffff)
    return false;
  if (ip.isFragment) return true;
  ByteView segment = packet.subspan(ip.l4Offset, ip.l4Length);
  if (ip.protocol == ip::kIcmp) return foldSum(sumBytes(segment)) == 0xffff;
  if (ip.protocol != ip::kTcp && ip.protocol != ip::kUdp && ip.protocol != ip::kIcmpV6) return true;
  return foldSum(sumBytes(segment, pseudoHeaderSum(ip.src, ip.dst, ip.protocol, ip.l4Length))) ==
         0xffff;
}

namespace {
uint64_t word(uint64_t seed, uint64_t index) {
  return Random(seed + index * 0xd1b54a32d192ed03).next();
}

template <typename F>
void eachRun(uint64_t seed, uint64_t offset, size_t size, F&& f) {
  std::array<uint8_t, 8> bytes;
  for (size_t done = 0; done < size;) {
    uint64_t at = offset + done;
    store64(bytes.data(), word(seed, at / 8));
    size_t n = std::min<size_t>(8 - at % 8, size - done);
    f(done, ByteView(bytes).subspan(at % 8, n));
    done += n;
  }
}
}  // namespace

void fillContent(uint64_t seed, uint64_t offset, ByteSpan out) {
  eachRun(seed, offset, out.size(), [&](size_t at, ByteView run) {
    std::copy(run.begin(), run.end(), out.begin() + static_cast<ptrdiff_t>(at));
  });
}

bool isContent(uint64_t seed, uint64_t offset, ByteView bytes) {
  bool same = true;
  eachRun(seed, offset, bytes.size(), [&](size_t at, ByteView run) {
    same &= std::equal(run.begin(), run.end(), bytes.begin() + static_cast<ptrdiff_t>(at));
  });
  return same;
}

}  // namespace braid::sim
