#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/packet.h"
#include "tunnel/wire/aead.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// What a handshake datagram is: its first byte (docs/protocol.md section 2).
enum class HandshakeKind : uint8_t {
  kInitiator = 0x20,      ///< a DTLS record of the initiator, with the cookie that it was given
  kResponder = 0x21,      ///< a DTLS record of the responder
  kCookieRequest = 0x22,  ///< the responder asks the initiator to come again with this cookie
};

/// Proves that its bearer receives at the address that it names; zeros: none yet.
using HandshakeCookie = std::array<uint8_t, 16>;
/// Chosen at random by the initiator; names one handshake in all its datagrams.
using HandshakeId = std::array<uint8_t, 8>;
/// Random, new for each datagram.
using HandshakeNonce = std::array<uint8_t, 12>;

/// What a handshake datagram says beside its sealed body.
struct HandshakeHeader {
  HandshakeKind kind = HandshakeKind::kInitiator;
  HandshakeId id{};
  HandshakeNonce nonce{};
  HandshakeCookie cookie{};  ///< kInitiator only
};
/// Bytes of a header of that kind.
constexpr size_t handshakeHeaderSize(HandshakeKind kind) {
  return 1 + sizeof(HandshakeId) + sizeof(HandshakeNonce) +
         (kind == HandshakeKind::kInitiator ? sizeof(HandshakeCookie) : 0);
}
/// The largest handshake datagram: fits every IPv6 path (RFC 8200 section 5) with room for tunnels.
inline constexpr size_t kMaxHandshakeDatagram = 1200;
/// The largest DTLS datagram that fits into one.
inline constexpr size_t kMaxHandshakeBody =
    kMaxHandshakeDatagram - handshakeHeaderSize(HandshakeKind::kInitiator) - kTagSize;

/// True when the first byte is a handshake datagram's; others belong to sessions, or to nobody.
constexpr bool isHandshakeDatagram(ByteView b) {
  return !b.empty() && b[0] >= 0x20 && b[0] <= 0x22;
}

/// The envelope of all handshake datagrams: sealed under keys that only who knows the responder's pin can make. To
/// everybody else the responder is silent, and a handshake with its certificates is unreadable noise. The envelope takes
/// the place of WireGuard's mac1 and OpenVPN's tls-crypt. Who the peers are, DTLS proves inside.
class HandshakeSeal {
 public:
  enum class Side : uint8_t { kInitiator, kResponder };

  /// The keys of one side. Throws std::runtime_error when OpenSSL lacks something.
  HandshakeSeal(Side side, const Pin& responder);

  /// Wraps the body in place. False when it has no room for header and tag, or OpenSSL fails: then nothing of it
  /// may be sent. The nonce must be new.
  [[nodiscard]] bool seal(const HandshakeHeader& header, Packet& body);

  struct Opened {
    HandshakeHeader header;
    ByteView body;  ///< in the datagram's bytes
  };
  /// Opens a datagram of the other side in place. nullopt: it does not know the responder's pin, or it was
  /// damaged; then the bytes are undefined.
  std::optional<Opened> open(ByteSpan datagram);

 private:
  Aead seal_, open_;
};

}  // namespace braid
