#include "inet/frame.h"

#include <algorithm>

namespace braid {

namespace {

constexpr uint16_t kArpEthernet = 1;  ///< hardware type (RFC 826)

MacAddress readMac(Reader& r) {
  MacAddress mac{};
  ByteView b = r.take(mac.size());
  std::copy(b.begin(), b.end(), mac.begin());
  return mac;
}

Address readV4(Reader& r) {
  ByteView b = r.take(4);
  return b.empty() ? Address{} : Address::v4(b);
}

std::optional<ArpFields> parseArp(ByteView b) {
  Reader r(b);
  bool isIpOverEthernet =
      r.u16() == kArpEthernet && r.u16() == Frame::kIpV4 && r.u8() == 6 && r.u8() == 4;
  ArpFields arp;
  arp.operation = r.u16();
  arp.senderMac = readMac(r);
  arp.sender = readV4(r);
  arp.targetMac = readMac(r);
  arp.target = readV4(r);
  if (!isIpOverEthernet || !r.ok()) return std::nullopt;
  return arp;
}

bool isVlanTag(uint16_t etherType) {
  return etherType == Frame::kVlan || etherType == Frame::kServiceVlan;
}

void parsePayload(ByteView payload, Frame& frame) {
  if (frame.etherType == Frame::kArp) {
    frame.arp = parseArp(payload);
  } else if (frame.etherType == Frame::kIpV4 || frame.etherType == Frame::kIpV6) {
    frame.ip = parseInnerPacket(payload);
    if (frame.ip && frame.ip->isV4() != (frame.etherType == Frame::kIpV4)) frame.ip.reset();
  }
}

}  // namespace

std::optional<Frame> parseFrame(ByteView bytes) {
  Reader r(bytes);
  Frame frame;
  frame.dst = readMac(r);
  frame.src = readMac(r);
  frame.etherType = r.u16();
  while (isVlanTag(frame.etherType) && frame.vlanTags < Frame::kMaxVlanTags) {
    frame.vlans[frame.vlanTags++] = r.u16() & 0x0fff;
    frame.etherType = r.u16();
  }
  if (!r.ok()) return std::nullopt;
  frame.isMulticast = frame.dst[0] & 1;
  frame.isBroadcast =
      std::all_of(frame.dst.begin(), frame.dst.end(), [](uint8_t b) { return b == 0xff; });
  frame.payloadOffset = bytes.size() - r.remaining();
  parsePayload(bytes.subspan(frame.payloadOffset), frame);
  return frame;
}

}  // namespace braid
