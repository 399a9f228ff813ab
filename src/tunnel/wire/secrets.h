#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "tunnel/wire/header.h"

namespace braid {

/// SHA-256 of a certificate's SubjectPublicKeyInfo (RFC 7469 section 2.4). It identifies a peer.
using Pin = std::array<uint8_t, 32>;

/// A secret that two gateways share besides their keys (`peers[].psk`). It is erased with the
/// object.
struct PresharedKey {
  std::array<uint8_t, 32> bytes{};

  PresharedKey() = default;
  explicit PresharedKey(const std::array<uint8_t, 32>& of) : bytes(of) {}
  PresharedKey(const PresharedKey&) = default;
  PresharedKey& operator=(const PresharedKey&) = default;
  ~PresharedKey();
  bool operator==(const PresharedKey&) const = default;
};

/// AEADs that seal datagrams. Both sides use that of the handshake's cipher suite.
enum class AeadKind : uint8_t { kAes128Gcm, kAes256Gcm, kChaCha20Poly1305 };

/// The result of a finished handshake; all but `peer` is the same at both sides. The secrets are
/// erased with the object.
struct SessionSecrets {
  AeadKind aead = AeadKind::kAes128Gcm;
  std::array<uint8_t, 32> initiatorSecret{};  ///< traffic secret, initiator to responder
  std::array<uint8_t, 32> responderSecret{};  ///< traffic secret, responder to initiator
  uint32_t sessionId = 0;  ///< names the session in datagram headers, both directions
  Pin peer{};              ///< pin of the other side's certificate
  ProtocolVersion version = kProtocolVersions.front();  ///< that both sides speak in this session

  ~SessionSecrets() { erase(); }
  /// Overwrites the secrets.
  void erase();
};

}  // namespace braid

struct evp_cipher_ctx_st;

namespace braid {

/// The key that a SecretRandom starts with. The driver takes it from the operating system, a new
/// one for each SecretRandom.
using RandomKey = std::array<uint8_t, 32>;
/// A key that follows from `number` and so is not secret: for tests.
RandomKey knownKey(uint64_t number);

/// Random numbers that outsiders must not be able to predict: tokens and skipped packet numbers,
/// which peers see; ids and nonces of handshakes; secrets of cookies; keys of hash tables; seeds of
/// generators that have one use each. They are the key stream of ChaCha20 (RFC 8439): knowing some
/// of them reveals nothing about the others. The same key gives the same numbers on every machine.
class SecretRandom {
 public:
  /// Throws std::runtime_error when OpenSSL does not have the cipher.
  explicit SecretRandom(const RandomKey& key);
  /// Continues as one that was made with this key: earlier numbers say nothing about later ones.
  /// Throws as the constructor.
  void restart(const RandomKey& key);
  ~SecretRandom();
  SecretRandom(const SecretRandom&) = delete;
  SecretRandom& operator=(const SecretRandom&) = delete;

  uint64_t next();
  /// Uniform in [0, bound); 0 for bound 0. The bias is below bound / 2^64.
  uint64_t below(uint64_t bound);
  /// Fills `out`. What is left of the last number is discarded.
  void fill(ByteSpan out);

 private:
  void refill();

  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
  std::array<uint8_t, 256> stream_{};  ///< the current part of the key stream
  size_t used_ = stream_.size();
};

}  // namespace braid
