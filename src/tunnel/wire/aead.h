#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "tunnel/wire/aead_cipher.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Bytes of key that a kind takes: 16 or 32.
constexpr size_t aeadKeySize(AeadKind kind) {
  return kind == AeadKind::kAes128Gcm ? 16 : 32;
}
/// Stable name for status and logs ("AES-128-GCM").
const char* aeadName(AeadKind kind);

/// One key in one direction. The cipher is set up once for each lane; a packet costs neither allocation nor key setup.
/// Threads may use an object at the same time, each by a lane of its own. The nonce is the IV XOR (32-bit subflow id,
/// 64-bit packet number), as draft-ietf-quic-multipath section 2.4: a pair of subflow and packet number must be sealed
/// at most once under a key.
class Aead {
 public:
  static constexpr size_t kIvSize = std::tuple_size_v<AeadNonce>;
  static constexpr unsigned kLanes = AeadCipher::kLanes;
  using Use = AeadUse;

  /// An empty object: opens nothing and seals nothing.
  Aead() = default;
  /// By the best library that there is. `key` has aeadKeySize(kind) bytes, `iv` kIvSize. Throws std::runtime_error when
  /// OpenSSL refuses the cipher.
  Aead(AeadKind kind, Use use, ByteView key, ByteView iv);
  /// By that one, which was made for `use`.
  Aead(std::unique_ptr<AeadCipher> cipher, Use use, ByteView iv);
  ~Aead();
  Aead(Aead&& other) noexcept;
  Aead& operator=(Aead&& other) noexcept;
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  explicit operator bool() const { return cipher_ != nullptr; }
  /// seal() has failed, on whichever lane.
  bool isBroken() const { return broken_.load(std::memory_order_relaxed); }

  /// Writes the ciphertext of all pieces in turn and the tag (kTagSize) to `out`. `header` is authenticated,
  /// not encrypted. `out` is either apart from every piece or, with one piece, equal to its address. False
  /// only when the library fails or this is not a sealing object: then nothing of `out` may be sent.
  [[nodiscard]] bool seal(uint32_t subflow, uint64_t packetNumber, ByteView header,
                          std::span<const ByteView> pieces, uint8_t* out, unsigned lane = 0);
  /// Decrypts in place; the plaintext is all but the last kTagSize bytes. False when the tag does not fit or
  /// is missing: then the bytes are undefined and must be dropped.
  [[nodiscard]] bool open(uint32_t subflow, uint64_t packetNumber, ByteView header, ByteSpan ciphertextAndTag,
                          unsigned lane = 0);

 private:
  AeadNonce nonceOf(uint32_t subflow, uint64_t packetNumber) const;

  /// On a cache line of its own: beside a shared object is the count of those who hold it, which the core's thread
  /// changes with each datagram.
  alignas(64) std::unique_ptr<AeadCipher> cipher_;
  AeadNonce iv_{};
  Use use_ = Use::kSeal;
  std::atomic<bool> broken_{false};
};

}  // namespace braid
