#include "gateway/dtls/dtls_cookie.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <stdexcept>

namespace braid {

DtlsCookies::DtlsCookies() : current_(fresh()), previous_(fresh()) {}

DtlsCookies::~DtlsCookies() {
  OPENSSL_cleanse(current_.data(), current_.size());
  OPENSSL_cleanse(previous_.data(), previous_.size());
}

DtlsCookies::Secret DtlsCookies::fresh() {
  Secret secret;
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1)
    throw std::runtime_error("the operating system gives no random bytes");
  return secret;
}

void DtlsCookies::rotate(Time now) {
  if (now < nextRotation_) return;
  bool slept = now >= nextRotation_ + kRotation;
  previous_ = slept ? fresh() : current_;
  current_ = fresh();
  nextRotation_ = now + kRotation;
}

DtlsCookies::Cookie DtlsCookies::make(const Secret& secret, const Endpoint& from) {
  std::array<uint8_t, 19> text;
  Writer w(text);
  w.u8(static_cast<uint8_t>(from.address.family));
  w.bytes(from.address.bytes);
  w.u16(from.port);
  Cookie cookie;
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text.data(), w.size(),
            cookie.data(), &size))
    throw std::runtime_error("OpenSSL does not give HMAC-SHA256");
  return cookie;
}

bool DtlsCookies::check(const Endpoint& from, ByteView cookie) const {
  if (cookie.size() != std::tuple_size_v<Cookie>) return false;
  auto equals = [&](const Cookie& expected) {
    return CRYPTO_memcmp(expected.data(), cookie.data(), expected.size()) == 0;
  };
  return equals(make(current_, from)) || equals(make(previous_, from));
}

}  // namespace braid
