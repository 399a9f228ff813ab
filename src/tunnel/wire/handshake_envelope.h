#pragma once

// The envelope of handshake datagrams and its cookies (docs/protocol.md section 2), the restart
// notice, and the text form of pins.
//
// The restart notice is the "call to return" of docs/protocol.md section 10: a gateway that has
// restarted, and has lost the keys of its sessions, tells an initiator that one of them is over. It
// is used instead of QUIC's stateless reset (RFC 9000 section 10.3).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "tunnel/wire/aead.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// The kind of a handshake datagram, which is its first byte (docs/protocol.md section 2).
enum class HandshakeKind : uint8_t {
  kInitiator = 0x20,      ///< a DTLS record of the initiator, with the cookie that it was given
  kResponder = 0x21,      ///< a DTLS record of the responder
  kCookieRequest = 0x22,  ///< the responder asks the initiator to try again with this cookie
};

/// Proves that the initiator receives at the address that it uses; zeros: none yet.
using HandshakeCookie = std::array<uint8_t, 16>;
/// Chosen at random by the initiator. The same in all datagrams of one handshake.
using HandshakeId = std::array<uint8_t, 8>;
/// Random, new for each datagram.
using HandshakeNonce = std::array<uint8_t, 12>;

/// The part of a handshake datagram before its sealed body.
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

/// True when the first byte is that of a handshake datagram.
constexpr bool isHandshakeDatagram(ByteView b) {
  return !b.empty() && b[0] >= 0x20 && b[0] <= 0x22;
}

/// The envelope of all handshake datagrams. Its keys are derived from the responder's pin, so only
/// a side that knows the pin can make or open one. To everybody else the responder is silent, and a
/// handshake with its certificates looks like noise. The envelope does what mac1 does for WireGuard
/// and tls-crypt for OpenVPN. It does not prove the identity of the peers: DTLS inside the envelope
/// does.
class HandshakeEnvelope {
 public:
  enum class Side : uint8_t { kInitiator, kResponder };

  /// The keys of one side. Throws std::runtime_error when OpenSSL lacks an algorithm.
  HandshakeEnvelope(Side side, const Pin& responder);

  /// Wraps the body in place. Returns false when the packet has no room for header and tag, or
  /// OpenSSL fails: then nothing of it may be sent. The nonce must be new.
  [[nodiscard]] bool seal(const HandshakeHeader& header, Packet& body);

  struct Opened {
    HandshakeHeader header;
    ByteView body;  ///< points into the datagram
  };
  /// Opens a datagram of the other side in place. Returns nullopt when its sender does not know the
  /// responder's pin, or when it was damaged; then the bytes are undefined.
  std::optional<Opened> open(ByteSpan datagram);

 private:
  Aead seal_, open_;
};

/// Makes and checks the cookies by which initiators prove that they receive at the address that
/// they use. A cookie is HMAC-SHA256 over address and port, cut to 16 bytes, under a secret that is
/// valid for at least one rotation.
class Cookies {
 public:
  static constexpr Duration kRotation = 60s;
  using Secret = std::array<uint8_t, 32>;

  Cookies() = default;
  ~Cookies();
  Cookies(const Cookies&) = delete;
  Cookies& operator=(const Cookies&) = delete;

  /// Must be called before make() and check(). When a new secret is due, calls `draw(ByteSpan)`,
  /// which must fill the bytes with unpredictable random numbers.
  template <typename F>
  void rotate(Time now, F&& draw) {
    if (now < nextRotation_) return;
    bool slept = now >= nextRotation_ + kRotation;
    previous_ = current_;
    if (slept) draw(ByteSpan(previous_));
    draw(ByteSpan(current_));
    nextRotation_ = now + kRotation;
  }
  HandshakeCookie make(const Endpoint& from) const { return make(current_, from); }
  /// True for a cookie that make() gave this address under the current or the previous secret.
  bool check(const Endpoint& from, const HandshakeCookie& cookie) const;

 private:
  static HandshakeCookie make(const Secret& secret, const Endpoint& from);

  Secret current_{}, previous_{};
  Time nextRotation_ = Time::min();
};

/// Known only to the two ends of one session, and to nobody else before the responder has sent it.
using RestartToken = std::array<uint8_t, 16>;

/// What each notice about a session says; the types of notices are those derived from it.
struct SessionNotice {
  uint32_t session = 0;
  RestartToken token{};

  /// Compares in constant time.
  friend bool operator==(const SessionNotice& a, const SessionNotice& b);
};
/// A responder's notice that it knows the session no more.
struct RestartNotice : SessionNotice {};

/// Type byte, session id, token.
inline constexpr size_t kRestartNoticeSize = 1 + 4 + sizeof(RestartToken);

/// The restart notice that would end the session of these secrets.
RestartNotice restartNoticeOf(const SessionSecrets& secrets);

/// True when the first byte is that of a restart notice; the rest is not checked.
constexpr bool isRestartNotice(ByteView b) {
  return !b.empty() && b[0] == 0x23;
}
/// Appends the datagram of the restart notice to an empty packet.
void writeRestartNotice(const RestartNotice& notice, Packet& out);
/// Returns nullopt when the type or the size is another one.
std::optional<RestartNotice> readRestartNotice(ByteView datagram);

/// A responder's notice that nothing which the initiator sends in a new session opens: their
/// pre-shared keys differ. Its token follows from the secrets as they were exported, without a
/// pre-shared key, so that both sides have it. The datagram is as long as a restart notice.
struct KeyNotice : SessionNotice {};

/// `exported`: the handshake's secrets before a pre-shared key is mixed in.
KeyNotice keyNoticeOf(const SessionSecrets& exported);
/// True when the first byte is that of a key notice; the rest is not checked.
constexpr bool isKeyNotice(ByteView b) {
  return !b.empty() && b[0] == 0x24;
}
/// Appends the datagram of the key notice to an empty packet.
void writeKeyNotice(const KeyNotice& notice, Packet& out);
/// Returns nullopt when the type or the size is another one.
std::optional<KeyNotice> readKeyNotice(ByteView datagram);

/// "sha256:" and the base64 (RFC 4648 section 4) of the 32 bytes.
std::string formatPin(const Pin& pin);
/// Accepts only the text that formatPin() gives for a pin; nullopt for all other text.
std::optional<Pin> parsePin(std::string_view text);
/// The base64 (RFC 4648 section 4) of the 32 bytes; nullopt for all other text.
std::optional<PresharedKey> parsePresharedKey(std::string_view base64);

}  // namespace braid
