#pragma once

// The AEADs that seal and open datagrams, and the libraries that compute them. Aead uses the best
// library that the machine has:
//
//     OpenSSL    every cipher, on every machine
//     ipsec-mb   AES-GCM on x86-64, where the build found the library. A call costs a small part of
//                what it costs with OpenSSL. Each byte uses the processor's wide AES instructions
//                (VAES), which OpenSSL knows from version 3.1 on.

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/secrets.h"

namespace braid {

using AeadNonce = std::array<uint8_t, 12>;

/// What an object of Aead or AeadCipher does for its whole life.
enum class AeadUse : uint8_t { kSeal, kOpen };

/// One key of one library. Calls do not allocate.
class AeadCipher {
 public:
  virtual ~AeadCipher() = default;

  /// Writes the ciphertext of all pieces, one after the other, and the tag (kTagSize) to `out`.
  /// `header` is authenticated only. `out` must not overlap any piece; with one piece, it may be
  /// the same address. Returns false when the library fails.
  virtual bool seal(const AeadNonce& nonce, ByteView header, std::span<const ByteView> pieces,
                    uint8_t* out) = 0;
  /// Decrypts `text` in place; the tag is behind it. Returns false when the tag is wrong: then
  /// `text` is undefined.
  virtual bool open(const AeadNonce& nonce, ByteView header, ByteSpan text) = 0;
};

/// Throws std::runtime_error when OpenSSL refuses the cipher.
std::unique_ptr<AeadCipher> makeOpenSslCipher(AeadKind kind, AeadUse use, ByteView key);
/// Returns nullptr when the build is without ipsec-mb, the processor has no AES instructions, or
/// `kind` is not AES-GCM.
std::unique_ptr<AeadCipher> makeIpsecMbCipher(AeadKind kind, ByteView key);

/// Bytes of a key of this kind: 16 or 32.
constexpr size_t aeadKeySize(AeadKind kind) {
  return kind == AeadKind::kAes128Gcm ? 16 : 32;
}
/// Stable name for status and logs ("AES-128-GCM").
const char* aeadName(AeadKind kind);

/// One key in one direction. A packet costs neither allocation nor key setup. The nonce is the IV
/// XOR (32-bit subflow id, 64-bit packet number), as in draft-ietf-quic-multipath section 2.4. So
/// each pair of subflow and packet number must be sealed at most once under a key.
class Aead {
 public:
  static constexpr size_t kIvSize = std::tuple_size_v<AeadNonce>;
  using Use = AeadUse;

  /// An empty object: opens nothing and seals nothing.
  Aead() = default;
  /// Uses the best library that there is. `key` has aeadKeySize(kind) bytes, `iv` kIvSize. Throws
  /// std::runtime_error when OpenSSL refuses the cipher.
  Aead(AeadKind kind, Use use, ByteView key, ByteView iv);
  /// Uses `cipher`, which must have been made for `use`.
  Aead(std::unique_ptr<AeadCipher> cipher, Use use, ByteView iv);
  ~Aead();
  Aead(Aead&& other) noexcept;
  Aead& operator=(Aead&& other) noexcept;
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  explicit operator bool() const { return cipher_ != nullptr; }
  /// Whether seal() has failed.
  bool isBroken() const { return broken_; }

  /// Writes the ciphertext of all pieces, one after the other, and the tag (kTagSize) to `out`.
  /// `header` is authenticated, not encrypted. `out` must not overlap any piece; with one piece, it
  /// may be the same address. Returns false only when the library fails or this is not a sealing
  /// object: then nothing of `out` may be sent.
  [[nodiscard]] bool seal(uint32_t subflow, uint64_t packetNumber, ByteView header,
                          std::span<const ByteView> pieces, uint8_t* out);
  /// Decrypts in place; the plaintext is all but the last kTagSize bytes. Returns false when the
  /// tag is wrong or missing: then the bytes are undefined and must be dropped.
  [[nodiscard]] bool open(uint32_t subflow, uint64_t packetNumber, ByteView header,
                          ByteSpan ciphertextAndTag);

 private:
  AeadNonce nonceOf(uint32_t subflow, uint64_t packetNumber) const;

  std::unique_ptr<AeadCipher> cipher_;
  AeadNonce iv_{};
  Use use_ = Use::kSeal;
  bool broken_ = false;
};

}  // namespace braid
