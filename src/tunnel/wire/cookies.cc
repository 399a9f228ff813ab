#include "tunnel/wire/cookies.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <stdexcept>

namespace braid {

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
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text.data(), w.size(), whole.data(),
            &size))
    throw std::runtime_error("OpenSSL does not give HMAC-SHA256");
  HandshakeCookie cookie;
  std::copy_n(whole.begin(), cookie.size(), cookie.begin());
  return cookie;
}

bool Cookies::check(const Endpoint& from, const HandshakeCookie& cookie) const {
  auto equals = [&](const HandshakeCookie& expected) {
    return CRYPTO_memcmp(expected.data(), cookie.data(), expected.size()) == 0;
  };
  return equals(make(current_, from)) || equals(make(previous_, from));
}

}  // namespace braid
