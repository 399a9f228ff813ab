#include "tunnel/wire/aead.h"

#include <openssl/crypto.h>

#include <stdexcept>
#include <utility>

namespace braid {

const char* aeadName(AeadKind kind) {
  switch (kind) {
    case AeadKind::kAes128Gcm:
      return "AES-128-GCM";
    case AeadKind::kAes256Gcm:
      return "AES-256-GCM";
    case AeadKind::kChaCha20Poly1305:
      return "ChaCha20-Poly1305";
  }
  return "unknown";
}

namespace {
std::unique_ptr<AeadCipher> bestCipher(AeadKind kind, AeadUse use, ByteView key) {
  if (key.size() != aeadKeySize(kind)) throw std::runtime_error("AEAD: wrong key size");
  std::unique_ptr<AeadCipher> fast = makeIpsecMbCipher(kind, key);
  return fast ? std::move(fast) : makeOpenSslCipher(kind, use, key);
}
}  // namespace

Aead::Aead(AeadKind kind, Use use, ByteView key, ByteView iv)
    : Aead(bestCipher(kind, use, key), use, iv) {}

Aead::Aead(std::unique_ptr<AeadCipher> cipher, Use use, ByteView iv)
    : cipher_(std::move(cipher)), use_(use) {
  if (iv.size() != kIvSize) throw std::runtime_error("AEAD: wrong IV size");
  std::memcpy(iv_.data(), iv.data(), kIvSize);
}

Aead::~Aead() {
  OPENSSL_cleanse(iv_.data(), kIvSize);
}

Aead::Aead(Aead&& other) noexcept
    : cipher_(std::move(other.cipher_)), iv_(other.iv_), use_(other.use_), broken_(other.broken_) {
  OPENSSL_cleanse(other.iv_.data(), kIvSize);
}

Aead& Aead::operator=(Aead&& other) noexcept {
  Aead taken(std::move(other));
  std::swap(cipher_, taken.cipher_);
  std::swap(iv_, taken.iv_);
  std::swap(use_, taken.use_);
  broken_ = taken.broken_;
  return *this;
}

AeadNonce Aead::nonceOf(uint32_t subflow, uint64_t packetNumber) const {
  AeadNonce nonce = iv_;
  store32(nonce.data(), load32(nonce.data()) ^ subflow);
  store64(nonce.data() + 4, load64(nonce.data() + 4) ^ packetNumber);
  return nonce;
}

bool Aead::seal(uint32_t subflow, uint64_t packetNumber, ByteView header,
                std::span<const ByteView> pieces, uint8_t* out) {
  bool good = cipher_ && use_ == Use::kSeal &&
              cipher_->seal(nonceOf(subflow, packetNumber), header, pieces, out);
  broken_ |= !good;
  return good;
}

bool Aead::open(uint32_t subflow, uint64_t packetNumber, ByteView header,
                ByteSpan ciphertextAndTag) {
  if (!cipher_ || use_ != Use::kOpen || ciphertextAndTag.size() < kTagSize) return false;
  return cipher_->open(nonceOf(subflow, packetNumber), header,
                       ciphertextAndTag.first(ciphertextAndTag.size() - kTagSize));
}

}  // namespace braid
