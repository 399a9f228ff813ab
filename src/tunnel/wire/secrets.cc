#include "tunnel/wire/secrets.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>

#include "base/bytes.h"

namespace braid {

PresharedKey::~PresharedKey() {
  OPENSSL_cleanse(bytes.data(), bytes.size());
}

void SessionSecrets::erase() {
  OPENSSL_cleanse(initiatorSecret.data(), initiatorSecret.size());
  OPENSSL_cleanse(responderSecret.data(), responderSecret.size());
}

RandomKey knownKey(uint64_t number) {
  RandomKey key{};
  store64(key.data(), number);
  return key;
}

void SecretRandom::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

SecretRandom::SecretRandom(const RandomKey& key) : context_(EVP_CIPHER_CTX_new()) {
  restart(key);
}

void SecretRandom::restart(const RandomKey& key) {
  constexpr std::array<uint8_t, 16> kCounterAndNonce{};  // zeros: each key has one stream
  EVP_CIPHER* cipher = EVP_CIPHER_fetch(nullptr, "ChaCha20", nullptr);
  bool ok = cipher && context_ &&
            EVP_EncryptInit_ex2(context_.get(), cipher, key.data(), kCounterAndNonce.data(),
                                nullptr) == 1;
  EVP_CIPHER_free(cipher);
  if (!ok) throw std::runtime_error("OpenSSL does not give the cipher ChaCha20");
  used_ = stream_.size();
}

SecretRandom::~SecretRandom() {
  OPENSSL_cleanse(stream_.data(), stream_.size());
}

uint64_t SecretRandom::next() {
  if (used_ == stream_.size()) refill();
  uint64_t number = load64(&stream_[used_]);
  used_ += sizeof number;
  return number;
}

uint64_t SecretRandom::below(uint64_t bound) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
}

void SecretRandom::fill(ByteSpan out) {
  while (!out.empty()) {
    std::array<uint8_t, sizeof(uint64_t)> bytes;
    store64(bytes.data(), next());
    size_t taken = std::min(out.size(), bytes.size());
    std::copy_n(bytes.begin(), taken, out.begin());
    out = out.subspan(taken);
  }
}

// The key stream is what the cipher makes of zeros.
void SecretRandom::refill() {
  stream_.fill(0);
  int written = 0;
  if (EVP_EncryptUpdate(context_.get(), stream_.data(), &written, stream_.data(),
                        static_cast<int>(stream_.size())) != 1)
    throw std::runtime_error("OpenSSL does not give random numbers");
  used_ = 0;
}

}  // namespace braid
