#include "inet/mss.h"

#include "inet/checksum.h"
#include "inet/protocol.h"
#include "inet/tcp_options.h"

namespace braid {

namespace {

constexpr size_t kChecksumOffset = 16;  ///< offset in the TCP header

uint16_t swapped(uint16_t v) {
  return static_cast<uint16_t>(v << 8 | v >> 8);
}

/// Lowers the option's value at `offset` of the TCP header; true when it was above `limit`.
bool lower(ByteSpan tcp, size_t offset, uint16_t limit) {
  uint16_t before = load16(&tcp[offset]);
  if (before <= limit) return false;
  uint16_t checksum = load16(&tcp[kChecksumOffset]);
  bool odd = offset % 2 != 0;
  checksum = odd ? updateChecksum(checksum, swapped(before), swapped(limit))
                 : updateChecksum(checksum, before, limit);
  store16(&tcp[offset], limit);
  store16(&tcp[kChecksumOffset], checksum);
  return true;
}

/// `header` is the TCP header with its options.
bool lowerMssOptions(ByteSpan header, uint16_t limit) {
  bool changed = false;
  forEachTcpOption(header.subspan(ip::kTcpHeader), [&](uint8_t kind, size_t offset, size_t length) {
    if (kind == tcpopt::kMss && length == 2) changed |= lower(header, ip::kTcpHeader + offset, limit);
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
