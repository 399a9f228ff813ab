#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

struct evp_cipher_ctx_st;

namespace braid {

/// What a SecretRandom begins with. The driver takes it from the operating system, for one SecretRandom.
using RandomKey = std::array<uint8_t, 32>;
/// A key that everybody knows who knows the number: for tests.
RandomKey knownKey(uint64_t number);

/// Random numbers for whatever somebody outside must not foresee: tokens and skipped packet numbers, which peers
/// see, names and nonces of handshakes, secrets of cookies, keys of hash tables, seeds of generators that have one use
/// each. They are the key stream of ChaCha20
/// (RFC 8439): who has seen some of them knows nothing of the others. The same key gives the same numbers on
/// every machine.
class SecretRandom {
 public:
  /// Throws std::runtime_error when OpenSSL does not have the cipher.
  explicit SecretRandom(const RandomKey& key);
  ~SecretRandom();
  SecretRandom(const SecretRandom&) = delete;
  SecretRandom& operator=(const SecretRandom&) = delete;

  uint64_t next();
  /// Uniform in [0, bound); 0 for bound 0. The bias is below bound / 2^64.
  uint64_t below(uint64_t bound);
  /// Fills `out`. What is left of the last number is thrown away.
  void fill(ByteSpan out);

 private:
  void refill();

  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
  std::array<uint8_t, 256> stream_{};  ///< of the key stream, what comes next
  size_t used_ = stream_.size();
};

}  // namespace braid
