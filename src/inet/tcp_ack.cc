#include "inet/tcp_ack.h"

#include <algorithm>

#include "inet/checksum.h"
#include "inet/inner_packet.h"
#include "inet/protocol.h"

namespace braid {

namespace {

constexpr size_t kTimestampsSize = 12;  // with two no-operations before it
constexpr size_t kMaxOptions = 40;      // RFC 9293 section 3.1: the header has at most 60 bytes
constexpr size_t kTcpChecksum = 16;     // offset in the header

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
  w.u16(0);  // RFC 6864 section 4.1: what is never cut needs no identification
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

void writeTcp(Writer& w, const TcpAck& ack, size_t segment) {
  w.u16(ack.key.sport);
  w.u16(ack.key.dport);
  w.u32(ack.seq.value);
  w.u32(ack.ack.value);
  w.u8(static_cast<uint8_t>(segment / 4 << 4));
  w.u8(TcpFields::kAck);
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

}  // namespace

Packet buildTcpAck(PacketPool& pool, const TcpAck& ack) {
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
  writeTcp(w, ack, segment);
  if (v4) store16(packet.data() + ip::kV4Checksum, internetChecksum(packet.view().first(ipHeader)));
  ByteView tcp = packet.view().subspan(ipHeader);
  store16(packet.data() + ipHeader + kTcpChecksum,
          transportChecksum(ack.key.source(), ack.key.destination(), ip::kTcp, tcp));
  return packet;
}

}  // namespace braid
