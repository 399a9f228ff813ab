#include "inet/tcp.h"

#include <algorithm>

#include "inet/inner_packet.h"
#include "inet/ip.h"

namespace braid {

namespace {

/// Two no-operations and the first two bytes of the timestamps option. The options of nearly all
/// segments begin so (RFC 7323 appendix A).
constexpr uint32_t kAlignedTimestamps = 0x0101080a;
constexpr uint8_t kMaxWindowShift = 14;

void readSacks(ByteView blocks, TcpOptionFields& fields) {
  fields.sackCount = static_cast<uint8_t>(std::min(blocks.size() / 8, TcpOptionFields::kMaxSacks));
  for (size_t i = 0; i < fields.sackCount; ++i) {
    fields.sacks[i] = {{load32(&blocks[i * 8])}, {load32(&blocks[i * 8 + 4])}};
  }
}

}  // namespace

TcpOptionFields parseTcpOptions(ByteView options) {
  TcpOptionFields fields;
  if (options.size() >= 12 && load32(options.data()) == kAlignedTimestamps) {
    fields.timestamps = {load32(&options[4]), load32(&options[8])};
    options = options.subspan(12);
  }
  forEachTcpOption(options, [&](uint8_t kind, size_t offset, size_t length) {
    const uint8_t* value = options.data() + offset;
    if (kind == tcpopt::kMss && length == 2) fields.mss = load16(value);
    if (kind == tcpopt::kWindowScale && length == 1)
      fields.windowShift = std::min(value[0], kMaxWindowShift);
    if (kind == tcpopt::kSackPermitted && length == 0) fields.sackPermitted = true;
    if (kind == tcpopt::kTimestamps && length == 8)
      fields.timestamps = {load32(value), load32(value + 4)};
    if (kind == tcpopt::kSack && length >= 8 && length % 8 == 0) {
      readSacks(options.subspan(offset, length), fields);
    }
  });
  return fields;
}

namespace {

constexpr size_t kTimestampsSize = 12;  // including two no-operations before it
constexpr size_t kMaxOptions = 40;      // RFC 9293 section 3.1: the header has at most 60 bytes

size_t sackCount(const TcpAck& ack) {
  size_t room = kMaxOptions - (ack.timestamps ? kTimestampsSize : 0) - 4;
  return std::min(ack.sacks.size(), room / 8);
}

size_t optionsSize(const TcpAck& ack) {
  size_t sacks = sackCount(ack);
  return (ack.timestamps ? kTimestampsSize : 0) + (sacks ? 4 + sacks * 8 : 0);
}

void writeV4(Writer& w, const TcpAck& ack, size_t segment) {
  w.u8(0x45);
  w.u8(static_cast<uint8_t>(ack.dscp << 2));
  w.u16(static_cast<uint16_t>(ip::kV4Header + segment));
  w.u16(0);  // identification: not needed without fragmentation (RFC 6864 section 4.1)
  w.u16(ip::kV4DontFragment);
  w.u8(ack.hopLimit);
  w.u8(ip::kTcp);
  w.u16(0);
  w.bytes(ack.key.source().view());
  w.bytes(ack.key.destination().view());
}

void writeV6(Writer& w, const TcpAck& ack, size_t segment) {
  w.u32(uint32_t{6} << 28 | uint32_t{ack.dscp} << 22 | (ack.flowLabel & 0xfffff));
  w.u16(static_cast<uint16_t>(segment));
  w.u8(ip::kTcp);
  w.u8(ack.hopLimit);
  w.bytes(ack.key.source().view());
  w.bytes(ack.key.destination().view());
}

void writeTcp(Writer& w, const TcpAck& ack, uint8_t flags, size_t segment) {
  w.u16(ack.key.sport);
  w.u16(ack.key.dport);
  w.u32(ack.seq.value);
  w.u32(ack.ack.value);
  w.u8(static_cast<uint8_t>(segment / 4 << 4));
  w.u8(flags);
  w.u16(ack.window);
  w.u32(0);  // checksum, urgent pointer
  if (ack.timestamps) {
    w.u32(0x0101080a);
    w.u32(ack.timestamps->value);
    w.u32(ack.timestamps->echo);
  }
  size_t sacks = sackCount(ack);
  if (sacks == 0) return;
  w.u16(0x0101);
  w.u8(tcpopt::kSack);
  w.u8(static_cast<uint8_t>(2 + sacks * 8));
  for (const SeqRange& block : ack.sacks.first(sacks)) {
    w.u32(block.begin.value);
    w.u32(block.end.value);
  }
}

Packet build(PacketPool& pool, const TcpAck& ack, uint8_t flags) {
  bool v4 = ack.key.family == Address::Family::kV4;
  if (!v4 && ack.key.family != Address::Family::kV6) return {};
  size_t ipHeader = v4 ? ip::kV4Header : ip::kV6Header;
  size_t segment = ip::kTcpHeader + optionsSize(ack);
  if (ipHeader + segment > pool.payload()) return {};
  Packet packet = pool.allocate();
  if (!packet) return {};
  packet.append(ipHeader + segment);
  Writer w(packet.span());
  v4 ? writeV4(w, ack, segment) : writeV6(w, ack, segment);
  writeTcp(w, ack, flags, segment);
  if (v4) store16(packet.data() + ip::kV4Checksum, internetChecksum(packet.view().first(ipHeader)));
  ByteView tcp = packet.view().subspan(ipHeader);
  store16(packet.data() + ipHeader + ip::kTcpChecksum,
          transportChecksum(ack.key.source(), ack.key.destination(), ip::kTcp, tcp));
  return packet;
}

}  // namespace

Packet buildTcpAck(PacketPool& pool, const TcpAck& ack) {
  return build(pool, ack, TcpFields::kAck);
}

Packet buildTcpRefusal(PacketPool& pool, ByteView syn) {
  std::optional<InnerPacket> ip = parseInnerPacket(syn);
  if (!ip || !ip->tcp) return {};
  TcpAck answer;
  answer.key = ip->flowKey().reversed();
  answer.ack = Seq{ip->tcp->seq} + uint32_t{ip->tcp->isSyn()} + ip->tcp->payloadLength;
  answer.dscp = ip->dscp;
  return build(pool, answer, TcpFields::kRst | TcpFields::kAck);
}

bool isTcpConnect(ByteView packet) {
  constexpr size_t kV4Protocol = 9, kV6NextHeader = 6;  // RFC 791 section 3.1, RFC 8200 section 3
  constexpr uint8_t kLooked = TcpFields::kSyn | TcpFields::kAck | TcpFields::kRst | TcpFields::kFin;
  if (packet.size() < ip::kV4Header + ip::kTcpHeader) return false;
  const uint8_t* at = packet.data();
  size_t header = 0;
  uint8_t protocol = 0;
  if (ip::version(at) == 4) {
    if (load16(at + ip::kV4Fragment) & ip::kV4FragmentOffset) return false;
    header = size_t{4} * (at[0] & 0xf);
    protocol = at[kV4Protocol];
  } else if (ip::version(at) == 6) {
    header = ip::kV6Header;
    protocol = at[kV6NextHeader];
  }
  if (protocol != ip::kTcp || packet.size() <= header + ip::kTcpFlags) return false;
  return (at[header + ip::kTcpFlags] & kLooked) == TcpFields::kSyn;
}

namespace {

uint16_t swapped(uint16_t v) {
  return static_cast<uint16_t>(v << 8 | v >> 8);
}

/// Lowers the 16-bit value at `offset` of the TCP header to `limit`, and updates the checksum. True
/// when the value was above `limit`.
bool lower(ByteSpan tcp, size_t offset, uint16_t limit) {
  uint16_t before = load16(&tcp[offset]);
  if (before <= limit) return false;
  uint16_t checksum = load16(&tcp[ip::kTcpChecksum]);
  bool odd = offset % 2 != 0;
  checksum = odd ? updateChecksum(checksum, swapped(before), swapped(limit))
                 : updateChecksum(checksum, before, limit);
  store16(&tcp[offset], limit);
  store16(&tcp[ip::kTcpChecksum], checksum);
  return true;
}

/// `header` is the TCP header with its options.
bool lowerMssOptions(ByteSpan header, uint16_t limit) {
  bool changed = false;
  forEachTcpOption(header.subspan(ip::kTcpHeader), [&](uint8_t kind, size_t offset, size_t length) {
    if (kind == tcpopt::kMss && length == 2)
      changed |= lower(header, ip::kTcpHeader + offset, limit);
  });
  return changed;
}

}  // namespace

bool clampMss(ByteSpan packet, const InnerPacket& parsed, uint16_t mtu) {
  if (!parsed.tcp || !parsed.tcp->isSyn() || parsed.tcp->isRst()) return false;
  size_t headers = (parsed.isV4() ? ip::kV4Header : ip::kV6Header) + ip::kTcpHeader;
  if (mtu <= headers) return false;
  ByteSpan header = packet.subspan(parsed.l4Offset, parsed.tcp->headerLength);
  return lowerMssOptions(header, static_cast<uint16_t>(mtu - headers));
}

bool clampMss(ByteSpan packet, uint16_t mtu) {
  auto parsed = parseInnerPacket(packet);
  return parsed && clampMss(packet, *parsed, mtu);
}

}  // namespace braid
