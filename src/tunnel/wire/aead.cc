#include "tunnel/wire/aead.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace braid {

namespace {

bool update(EVP_CIPHER_CTX* context, uint8_t* out, ByteView in) {
  int written = 0;
  return in.empty() || EVP_CipherUpdate(context, out, &written, in.data(), static_cast<int>(in.size())) == 1;
}

}  // namespace

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

Aead::Aead(AeadKind kind, Use use, ByteView key, ByteView iv) : use_(use) {
  if (key.size() != aeadKeySize(kind) || iv.size() != kIvSize)
    throw std::runtime_error("AEAD: wrong key or IV size");
  EVP_CIPHER* cipher = EVP_CIPHER_fetch(nullptr, aeadName(kind), nullptr);
  context_ = EVP_CIPHER_CTX_new();
  bool ok = cipher && context_ &&
            EVP_CipherInit_ex2(context_, cipher, key.data(), iv.data(), use == Use::kSeal, nullptr) == 1;
  EVP_CIPHER_free(cipher);
  if (!ok) {
    erase();
    throw std::runtime_error(std::string("OpenSSL does not give the cipher ") + aeadName(kind));
  }
  std::memcpy(iv_.data(), iv.data(), kIvSize);
}

Aead::~Aead() {
  erase();
}

Aead::Aead(Aead&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)), iv_(other.iv_), use_(other.use_) {
  OPENSSL_cleanse(other.iv_.data(), kIvSize);
}

Aead& Aead::operator=(Aead&& other) noexcept {
  Aead taken(std::move(other));
  std::swap(context_, taken.context_);
  std::swap(iv_, taken.iv_);
  std::swap(use_, taken.use_);
  return *this;
}

void Aead::erase() {
  EVP_CIPHER_CTX_free(context_);  // clears the expanded key
  context_ = nullptr;
  OPENSSL_cleanse(iv_.data(), kIvSize);
}

bool Aead::start(Use use, uint32_t subflow, uint64_t packetNumber, ByteView header) {
  if (!context_ || use_ != use) return false;
  std::array<uint8_t, kIvSize> nonce = iv_;
  store32(nonce.data(), load32(nonce.data()) ^ subflow);
  store64(nonce.data() + 4, load64(nonce.data() + 4) ^ packetNumber);
  return EVP_CipherInit_ex2(context_, nullptr, nullptr, nonce.data(), -1, nullptr) == 1 &&
         update(context_, nullptr, header);
}

bool Aead::seal(uint32_t subflow, uint64_t packetNumber, ByteView header, std::span<const ByteView> pieces,
                uint8_t* out) {
  if (!start(Use::kSeal, subflow, packetNumber, header)) return false;
  for (ByteView piece : pieces) {
    if (!update(context_, out, piece)) return false;
    out += piece.size();
  }
  int none = 0;
  return EVP_CipherFinal_ex(context_, out, &none) == 1 &&
         EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, kTagSize, out) == 1;
}

bool Aead::open(uint32_t subflow, uint64_t packetNumber, ByteView header, ByteSpan ciphertextAndTag) {
  if (ciphertextAndTag.size() < kTagSize) return false;
  ByteSpan text = ciphertextAndTag.first(ciphertextAndTag.size() - kTagSize);
  uint8_t* tag = text.data() + text.size();
  int none = 0;
  return start(Use::kOpen, subflow, packetNumber, header) && update(context_, text.data(), text) &&
         EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_TAG, kTagSize, tag) == 1 &&
         EVP_CipherFinal_ex(context_, tag, &none) == 1;
}

}  // namespace braid
