#include "inet/datagram_sign.h"

#include <algorithm>
#include <array>

#include "inet/ip.h"

namespace braid {

namespace {

constexpr size_t kUdpHead = 8;            ///< RFC 768
constexpr uint16_t kDnsPort = 53;         ///< a DNS message begins with a random number, which
                                          ///< could look like another protocol
constexpr uint16_t kNatTraversal = 4500;  ///< RFC 3948

/// Recognizes QUIC's long header (RFC 8999 section 5.1): first byte, version, and two connection
/// ids with their lengths.
DatagramSign quicSign(ByteView p) {
  constexpr size_t kIds = 5, kLongestId = 20, kPaddedInitial = 1200;
  constexpr uint32_t kVersion1 = 1, kVersion2 = 0x6b3343cf;
  if (p.size() < kIds + 2 || !(p[0] & 0x80)) return DatagramSign::kNone;
  size_t source = kIds + 1 + p[kIds];
  if (p[kIds] > kLongestId || source >= p.size() || p[source] > kLongestId)
    return DatagramSign::kNone;
  size_t end = source + 1 + p[source];
  if (end > p.size()) return DatagramSign::kNone;
  uint32_t version = load32(&p[1]);
  if (version == kVersion1 || version == kVersion2) return DatagramSign::kOrdered;
  // Version Negotiation (RFC 8999 section 6): a list of versions follows.
  if (version == 0)
    return p.size() > end && (p.size() - end) % 4 == 0 ? DatagramSign::kSetup : DatagramSign::kNone;
  if (!(p[0] & 0x40)) return DatagramSign::kNone;
  if (p.size() >= kPaddedInitial) return DatagramSign::kOrdered;
  // A client pads its first datagram. A server may begin with a shorter one (a Retry or an ACK),
  // and has a connection id of its own.
  return p[source] > 0 ? DatagramSign::kSetup : DatagramSign::kNone;
}

/// Recognizes the messages of the WireGuard paper, section 5.4: initiation, response, cookie reply,
/// data. Data is padded to a multiple of 16 bytes, but never beyond the device's MTU. The usual
/// MTU, 1420, is not a multiple of 16. In such full packets the counter is checked instead: its
/// highest bytes are 0.
bool isWireGuard(ByteView p) {
  constexpr size_t kLeastData = 32, kFull = 1000;
  if (p.size() < kLeastData || p[1] || p[2] || p[3]) return false;
  switch (p[0]) {
    case 1:
      return p.size() == 148;
    case 2:
      return p.size() == 92;
    case 3:
      return p.size() == 64;
    case 4:
      return p.size() % 16 == 0 || (p.size() >= kFull && !(p[13] | p[14] | p[15]));
    default:
      return false;
  }
}

/// Recognizes a hard reset: opcode, session id, and authentication. With tls-auth an HMAC, a
/// counter and the time follow, and then, as without tls-auth, the list of acknowledged packets and
/// the packet's own number, 0. With tls-crypt the counter and the time come first, then the HMAC,
/// and the rest is encrypted. A server adds 6 bytes with its options for a client of tls-crypt-v2.
bool isOpenVpn(ByteView p) {
  constexpr size_t kPlain = 14, kCounter = 9, kCounterAndTime = 8, kTlsCrypt = 54, kOffer = 6;
  constexpr uint32_t kFirstCounters = 16,
                     kCounterBits = 0x00ffffff;  // with tls-crypt-v2 the highest byte is 0x0f
  if (p.size() < kPlain) return false;
  auto counts = [&](size_t at) {
    uint32_t counter = load32(&p[at]) & kCounterBits;
    return counter > 0 && counter < kFirstCounters;
  };
  constexpr uint8_t kClientV2 = 7 << 3, kServerV2 = 8 << 3, kClientV3 = 10 << 3;
  if (p[0] == kClientV3) return p.size() > kTlsCrypt && counts(kCounter);
  if (p[0] != kClientV2 && p[0] != kServerV2) return false;
  size_t acks = p[0] == kServerV2 ? 12 : 0;  // an acknowledged number and the peer's session id
  if (p.size() < kPlain + acks) return false;
  auto endsPlain = [&] {
    return load32(&p[p.size() - 4]) == 0 && p[p.size() - 5 - acks] == (acks > 0 ? 1 : 0);
  };
  size_t added = p.size() - kPlain - acks;
  if (added == 0) return endsPlain();
  bool isTlsCrypt =
      p.size() == kTlsCrypt + acks || (acks > 0 && p.size() == kTlsCrypt + acks + kOffer);
  if (isTlsCrypt && counts(kCounter)) return true;
  constexpr std::array<size_t, 6> kHmacs{16, 20, 28, 32, 48, 64};
  return std::any_of(kHmacs.begin(), kHmacs.end(), [&](size_t hmac) {
    return added == hmac + kCounterAndTime && counts(kCounter + hmac) && endsPlain();
  });
}

/// UDP encapsulation of IPsec (RFC 3948 section 2): IKE has a marker of zeros, a NAT keepalive is
/// one byte, everything else is ESP.
DatagramSign natTraversalSign(ByteView p) {
  constexpr size_t kLeastEsp = 16;
  constexpr uint32_t kReservedSpis = 256;
  if (p.size() == 1 && p[0] == 0xff) return DatagramSign::kSetup;
  if (p.size() < kLeastEsp) return DatagramSign::kNone;
  if (load32(p.data()) == 0) return DatagramSign::kSetup;
  return load32(p.data()) >= kReservedSpis ? DatagramSign::kOrdered : DatagramSign::kNone;
}

/// Recognizes a record of DTLS 1.0 or 1.2. Data of DTLS 1.3 has another header, which cannot be
/// recognized; such flows are judged by their rate.
DatagramSign dtlsSign(ByteView p) {
  constexpr size_t kHeader = 13;
  constexpr uint8_t kChangeCipherSpec = 20, kHandshake = 22, kApplicationData = 23;
  if (p.size() < kHeader) return DatagramSign::kNone;
  uint16_t version = load16(&p[1]);
  if (version != 0xfeff && version != 0xfefd) return DatagramSign::kNone;
  if (kHeader + load16(&p[11]) > p.size()) return DatagramSign::kNone;
  if (p[0] == kApplicationData)
    return load16(&p[3]) > 0 ? DatagramSign::kOrdered : DatagramSign::kNone;
  return p[0] >= kChangeCipherSpec && p[0] <= kHandshake ? DatagramSign::kSetup
                                                         : DatagramSign::kNone;
}

/// Tailscale's peers probe for each other before and between WireGuard messages, from the same
/// ports. The probes begin with these bytes.
bool isTailscaleProbe(ByteView p) {
  constexpr std::array<uint8_t, 6> kMagic{0x54, 0x53, 0xf0, 0x9f, 0x92, 0xac};
  return p.size() > kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), p.begin());
}

}  // namespace

DatagramSign datagramSign(const InnerPacket& ip, ByteView ipPacket) {
  constexpr uint8_t kEf = 46, kVoiceAdmit = 44;
  if (ip.dscp == kEf || ip.dscp == kVoiceAdmit) return DatagramSign::kTimely;
  if (ip.protocol != ip::kUdp || ip.isFragment || !ip.hasPorts || ip.l4Length < kUdpHead)
    return DatagramSign::kNone;
  if (ip.sport == kDnsPort || ip.dport == kDnsPort) return DatagramSign::kNone;
  ByteView payload = ipPacket.subspan(ip.l4Offset + kUdpHead, ip.payloadLength);
  if (ip.sport == kNatTraversal || ip.dport == kNatTraversal) return natTraversalSign(payload);
  if (isWireGuard(payload) || isOpenVpn(payload)) return DatagramSign::kOrdered;
  if (isTailscaleProbe(payload)) return DatagramSign::kSetup;
  DatagramSign dtls = dtlsSign(payload);
  return dtls != DatagramSign::kNone ? dtls : quicSign(payload);
}

}  // namespace braid
