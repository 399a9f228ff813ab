#include "gateway/dtls/join.h"

#include <openssl/crypto.h>

#include "tunnel/wire/key_schedule.h"

namespace braid {

namespace {

Aead joinAead(AeadKind kind, Aead::Use use, ByteView secret) {
  std::array<uint8_t, 32> key;
  std::array<uint8_t, Aead::kIvSize> iv;
  ByteSpan used = ByteSpan(key).first(aeadKeySize(kind));
  hkdfExpandLabel(secret, "braid key", used);
  hkdfExpandLabel(secret, "braid iv", iv);
  Aead out(kind, use, used, iv);
  OPENSSL_cleanse(key.data(), key.size());
  return out;
}

ByteView secretOf(const JoinSecrets& secrets, bool initiator) {
  return initiator ? secrets.initiatorSecret : secrets.responderSecret;
}

}  // namespace

JoinSecrets::~JoinSecrets() {
  OPENSSL_cleanse(initiatorSecret.data(), initiatorSecret.size());
  OPENSSL_cleanse(responderSecret.data(), responderSecret.size());
}

JoinChannel::JoinChannel(const JoinSecrets& secrets, Side side)
    : ownKind_(side == Side::kInitiator ? JoinKind::kRequest : JoinKind::kAnswer),
      otherKind_(side == Side::kInitiator ? JoinKind::kAnswer : JoinKind::kRequest),
      seal_(joinAead(secrets.aead, Aead::Use::kSeal, secretOf(secrets, side == Side::kInitiator))),
      open_(joinAead(secrets.aead, Aead::Use::kOpen, secretOf(secrets, side == Side::kResponder))),
      binding_(secrets.binding) {}

const std::vector<uint8_t>& JoinChannel::seal(ByteView message) {
  if (hasSpoken() || message.size() > kMaxJoinMessage) return sealed_;
  sealed_.assign(1 + message.size() + kTagSize, static_cast<uint8_t>(ownKind_));
  if (!seal_.seal(0, 0, ByteView(sealed_).first(1), {&message, 1}, sealed_.data() + 1))
    sealed_.clear();
  return sealed_;
}

std::optional<JoinMessage> JoinChannel::open(ByteView body) {
  if (body.size() < 1 + kTagSize || body[0] != static_cast<uint8_t>(otherKind_))
    return std::nullopt;
  JoinMessage copy(body.begin() + 1, body.end());
  if (!open_.open(0, 0, body.first(1), copy)) return std::nullopt;
  copy.resize(copy.size() - kTagSize);
  return copy;
}

}  // namespace braid
