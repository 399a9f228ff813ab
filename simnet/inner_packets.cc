#include "simnet/inner_packets.h"

#include <algorithm>

#include "base/random.h"
#include "inet/checksum.h"
#include "inet/protocol.h"

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
  uint16_t sum =
      f.protocol == ip::kIcmp ? internetChecksum(body) : transportChecksum(f.src, f.dst, f.protocol, body);
  if (f.protocol == ip::kUdp && sum == 0) sum = 0xffff;
  store16(&body[checksumAt], sum);
  return b;
}

Bytes tcpPacket(const IpFields& ip, const TcpSegment& t) {
  size_t options = (t.mss ? 4 : 0) + (t.windowShift ? 4 : 0);
  Bytes b(ip::kTcpHeader + options + t.payload.size());
  store16(&b[0], t.sport);
  store16(&b[2], t.dport);
  store32(&b[4], t.seq);
  store32(&b[8], t.ack);
  b[12] = static_cast<uint8_t>((ip::kTcpHeader + options) / 4 << 4);
  b[13] = t.flags;
  store16(&b[14], t.window);
  size_t at = ip::kTcpHeader;
  if (t.mss) {
    b[at] = 2;
    b[at + 1] = 4;
    store16(&b[at + 2], t.mss);
    at += 4;
  }
  if (t.windowShift) {
    b[at] = 1;
    b[at + 1] = 3;
    b[at + 2] = 3;
    b[at + 3] = t.windowShift;
    at += 4;
  }
  std::copy(t.payload.begin(), t.payload.end(), b.begin() + static_cast<ptrdiff_t>(at));
  return ipPacket(ip, b, 16);
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

uint16_t mssOf(ByteView packet, const InnerPacket& ip) {
  ByteView options = packet.subspan(ip.l4Offset, ip.tcp->headerLength).subspan(ip::kTcpHeader);
  for (size_t i = 0; i + 1 < options.size() && options[i] != 0;) {
    if (options[i] == 1) {
      ++i;
      continue;
    }
    if (options[i] == 2 && i + 4 <= options.size()) return load16(&options[i + 2]);
    i += std::max<size_t>(options[i + 1], 2);
  }
  return 0;
}

bool checksumsValid(ByteView packet, const InnerPacket& ip) {
  if (ip.isV4() && foldSum(sumBytes(packet.first(size_t{packet[0] & 0x0fu} * 4))) != 0xffff) return false;
  if (ip.isFragment) return true;
  ByteView segment = packet.subspan(ip.l4Offset, ip.l4Length);
  if (ip.protocol == ip::kIcmp) return foldSum(sumBytes(segment)) == 0xffff;
  if (ip.protocol != ip::kTcp && ip.protocol != ip::kUdp && ip.protocol != ip::kIcmpV6) return true;
  return foldSum(sumBytes(segment, pseudoHeaderSum(ip.src, ip.dst, ip.protocol, ip.l4Length))) == 0xffff;
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
