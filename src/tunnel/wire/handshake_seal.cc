#include "tunnel/wire/handshake_seal.h"

#include <openssl/crypto.h>

#include <algorithm>

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

// `bytes` is long enough and begins with a known kind.
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

HandshakeSeal::HandshakeSeal(Side side, const Pin& responder) {
  static constexpr std::array<uint8_t, 32> kNoSalt{};
  TrafficSecret base;
  hkdfExtract(kNoSalt, responder, base);
  bool initiator = side == Side::kInitiator;
  seal_ = makeAead(Aead::Use::kSeal, base, initiator);
  open_ = makeAead(Aead::Use::kOpen, base, !initiator);
  OPENSSL_cleanse(base.data(), base.size());
}

bool HandshakeSeal::seal(const HandshakeHeader& header, Packet& body) {
  size_t size = handshakeHeaderSize(header.kind);
  if (body.headroom() < size || body.tailroom() < kTagSize) return false;
  ByteView text = body.view();
  uint8_t* cipher = body.data();
  body.append(kTagSize);
  ByteSpan head(body.prepend(size), size);
  Writer w(head);
  write(w, header);
  return w.ok() && seal_.seal(firstOf(header.nonce), restOf(header.nonce), head, {&text, 1}, cipher);
}

std::optional<HandshakeSeal::Opened> HandshakeSeal::open(ByteSpan datagram) {
  if (!isHandshakeDatagram(datagram) || datagram.size() > kMaxHandshakeDatagram) return std::nullopt;
  size_t size = handshakeHeaderSize(static_cast<HandshakeKind>(datagram[0]));
  if (datagram.size() <= size + kTagSize) return std::nullopt;
  Opened opened{read(datagram), datagram.subspan(size, datagram.size() - size - kTagSize)};
  const HandshakeNonce& nonce = opened.header.nonce;
  if (!open_.open(firstOf(nonce), restOf(nonce), datagram.first(size), datagram.subspan(size)))
    return std::nullopt;
  return opened;
}

}  // namespace braid
