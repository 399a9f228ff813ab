#include "tunnel/wire/handshake_envelope.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "tunnel/wire/key_schedule.h"

namespace braid {

namespace {

Aead makeAead(Aead::Use use, const TrafficSecret& secret, bool ofInitiator) {
  constexpr AeadKind kKind = AeadKind::kChaCha20Poly1305;
  std::array<uint8_t, aeadKeySize(kKind)> key;
  std::array<uint8_t, Aead::kIvSize> none{};  // the whole nonce is in the datagram
  hkdfExpandLabel(secret, ofInitiator ? "braid hs i" : "braid hs r", key);
  Aead aead(kKind, use, key, none);
  OPENSSL_cleanse(key.data(), key.size());
  return aead;
}

void write(Writer& w, const HandshakeHeader& header) {
  w.u8(static_cast<uint8_t>(header.kind));
  w.bytes(header.id);
  w.bytes(header.nonce);
  if (header.kind == HandshakeKind::kInitiator) w.bytes(header.cookie);
}

// `bytes` must be long enough and begin with a known kind.
HandshakeHeader read(ByteView bytes) {
  HandshakeHeader header;
  header.kind = static_cast<HandshakeKind>(bytes[0]);
  Reader r(bytes.subspan(1));
  auto take = [&](auto& field) { std::ranges::copy(r.take(field.size()), field.begin()); };
  take(header.id);
  take(header.nonce);
  if (header.kind == HandshakeKind::kInitiator) take(header.cookie);
  return header;
}

uint32_t firstOf(const HandshakeNonce& nonce) {
  return load32(nonce.data());
}
uint64_t restOf(const HandshakeNonce& nonce) {
  return load64(nonce.data() + 4);
}

}  // namespace

HandshakeEnvelope::HandshakeEnvelope(Side side, const Pin& responder) {
  static constexpr std::array<uint8_t, 32> kNoSalt{};
  TrafficSecret base;
  hkdfExtract(kNoSalt, responder, base);
  bool initiator = side == Side::kInitiator;
  seal_ = makeAead(Aead::Use::kSeal, base, initiator);
  open_ = makeAead(Aead::Use::kOpen, base, !initiator);
  OPENSSL_cleanse(base.data(), base.size());
}

bool HandshakeEnvelope::seal(const HandshakeHeader& header, Packet& body) {
  size_t size = handshakeHeaderSize(header.kind);
  if (body.headroom() < size || body.tailroom() < kTagSize) return false;
  ByteView text = body.view();
  uint8_t* cipher = body.data();
  body.append(kTagSize);
  ByteSpan head(body.prepend(size), size);
  Writer w(head);
  write(w, header);
  return w.ok() &&
         seal_.seal(firstOf(header.nonce), restOf(header.nonce), head, {&text, 1}, cipher);
}

std::optional<HandshakeEnvelope::Opened> HandshakeEnvelope::open(ByteSpan datagram) {
  if (!isHandshakeDatagram(datagram) || datagram.size() > kMaxHandshakeDatagram)
    return std::nullopt;
  size_t size = handshakeHeaderSize(static_cast<HandshakeKind>(datagram[0]));
  if (datagram.size() <= size + kTagSize) return std::nullopt;
  Opened opened{read(datagram), datagram.subspan(size, datagram.size() - size - kTagSize)};
  const HandshakeNonce& nonce = opened.header.nonce;
  if (!open_.open(firstOf(nonce), restOf(nonce), datagram.first(size), datagram.subspan(size)))
    return std::nullopt;
  return opened;
}

Cookies::~Cookies() {
  OPENSSL_cleanse(current_.data(), current_.size());
  OPENSSL_cleanse(previous_.data(), previous_.size());
}

HandshakeCookie Cookies::make(const Secret& secret, const Endpoint& from) {
  std::array<uint8_t, 19> text;
  Writer w(text);
  w.u8(static_cast<uint8_t>(from.address.family));
  w.bytes(from.address.bytes);
  w.u16(from.port);
  std::array<uint8_t, 32> whole;
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text.data(), w.size(),
            whole.data(), &size))
    throw std::runtime_error("OpenSSL does not give HMAC-SHA256");
  HandshakeCookie cookie;
  std::copy_n(whole.begin(), cookie.size(), cookie.begin());
  return cookie;
}

bool Cookies::check(const Endpoint& from, const HandshakeCookie& cookie) const {
  // The cookie is compared with the cookies of both secrets, also when the first is equal: the time
  // must not tell which secret it was made under.
  auto equals = [&](const HandshakeCookie& expected) -> unsigned {
    return CRYPTO_memcmp(expected.data(), cookie.data(), expected.size()) == 0;
  };
  return (equals(make(current_, from)) | equals(make(previous_, from))) != 0;
}

namespace {

constexpr uint8_t kRestartType = 0x23;
constexpr uint8_t kKeyType = 0x24;

void writeNotice(uint8_t type, const SessionNotice& notice, Packet& out) {
  Writer w(ByteSpan(out.append(kRestartNoticeSize), kRestartNoticeSize));
  w.u8(type);
  w.u32(notice.session);
  w.bytes(notice.token);
}

// Reads all but the type.
template <typename Notice>
std::optional<Notice> readNotice(ByteView datagram) {
  if (datagram.size() != kRestartNoticeSize) return std::nullopt;
  Notice notice;
  notice.session = load32(&datagram[1]);
  std::ranges::copy(datagram.last(notice.token.size()), notice.token.begin());
  return notice;
}

}  // namespace

bool operator==(const SessionNotice& a, const SessionNotice& b) {
  return a.session == b.session &&
         CRYPTO_memcmp(a.token.data(), b.token.data(), a.token.size()) == 0;
}

// The tokens are derived from the responder's secret, because the responder sends the notices. They
// reveal nothing about that secret.
RestartNotice restartNoticeOf(const SessionSecrets& secrets) {
  RestartNotice notice;
  notice.session = secrets.sessionId;
  hkdfExpandLabel(secrets.responderSecret, "braid return", notice.token);
  return notice;
}

void writeRestartNotice(const RestartNotice& notice, Packet& out) {
  writeNotice(kRestartType, notice, out);
}

std::optional<RestartNotice> readRestartNotice(ByteView datagram) {
  return isRestartNotice(datagram) ? readNotice<RestartNotice>(datagram) : std::nullopt;
}

KeyNotice keyNoticeOf(const SessionSecrets& exported) {
  KeyNotice notice;
  notice.session = exported.sessionId;
  hkdfExpandLabel(exported.responderSecret, "braid psk", notice.token);
  return notice;
}

void writeKeyNotice(const KeyNotice& notice, Packet& out) {
  writeNotice(kKeyType, notice, out);
}

std::optional<KeyNotice> readKeyNotice(ByteView datagram) {
  return isKeyNotice(datagram) ? readNotice<KeyNotice>(datagram) : std::nullopt;
}

namespace {

using Bytes32 = std::array<uint8_t, 32>;
constexpr std::string_view kPrefix = "sha256:";
constexpr size_t kBase64Size = 44;  // of 32 bytes: 43 characters and one '='
using Base64Text = std::array<unsigned char, kBase64Size + 1>;

Base64Text base64Of(const Bytes32& bytes) {
  Base64Text text;
  EVP_EncodeBlock(text.data(), bytes.data(), bytes.size());
  return text;
}

std::optional<Bytes32> fromBase64(std::string_view base64) {
  std::array<unsigned char, kBase64Size / 4 * 3> decoded;
  if (base64.size() != kBase64Size ||
      EVP_DecodeBlock(decoded.data(), reinterpret_cast<const unsigned char*>(base64.data()),
                      kBase64Size) != static_cast<int>(decoded.size()))
    return std::nullopt;
  Bytes32 bytes;
  std::copy_n(decoded.begin(), bytes.size(), bytes.begin());
  OPENSSL_cleanse(decoded.data(), decoded.size());
  // OpenSSL accepts blanks, misplaced '=' and spare bits.
  Base64Text again = base64Of(bytes);
  bool isExact = std::equal(base64.begin(), base64.end(), again.begin(), std::equal_to<int>());
  OPENSSL_cleanse(again.data(), again.size());
  std::optional<Bytes32> out;
  if (isExact) out = bytes;
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return out;
}

}  // namespace

std::string formatPin(const Pin& pin) {
  return std::string(kPrefix) + reinterpret_cast<const char*>(base64Of(pin).data());
}

std::optional<Pin> parsePin(std::string_view text) {
  return text.starts_with(kPrefix) ? fromBase64(text.substr(kPrefix.size())) : std::nullopt;
}

std::optional<PresharedKey> parsePresharedKey(std::string_view base64) {
  std::optional<Bytes32> bytes = fromBase64(base64);
  if (!bytes) return std::nullopt;
  PresharedKey key(*bytes);
  OPENSSL_cleanse(bytes->data(), bytes->size());
  return key;
}

}  // namespace braid
