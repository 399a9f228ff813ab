#pragma once

// The libraries that seal and open. Aead asks for the best one that the machine has.
//
//     OpenSSL    every kind, everywhere
//     ipsec-mb   AES-GCM on x86-64, where the build found the library: a small part of OpenSSL's cost for each call, and
//                with the processor's wide AES instructions (VAES), which OpenSSL knows from version 3.1 on, for each byte

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "tunnel/wire/secrets.h"

namespace braid {

using AeadNonce = std::array<uint8_t, 12>;

/// What an object of Aead and AeadCipher does all its life.
enum class AeadUse : uint8_t { kSeal, kOpen };

/// One key of one library. Threads may use it at the same time, each by a lane of its own, below kLanes; a lane but the
/// first is set up by its first call, no other call allocates.
class AeadCipher {
 public:
  static constexpr unsigned kLanes = 8;
  virtual ~AeadCipher() = default;

  /// Writes the ciphertext of all pieces in turn and the tag (kTagSize) to `out`; `header` is authenticated only.
  /// `out` is apart from every piece or, with one piece, equal to its address. False when the library fails.
  virtual bool seal(const AeadNonce& nonce, ByteView header, std::span<const ByteView> pieces, uint8_t* out,
                    unsigned lane) = 0;
  /// Decrypts `text` in place, behind which the tag is. False when that is wrong: then `text` is undefined.
  virtual bool open(const AeadNonce& nonce, ByteView header, ByteSpan text, unsigned lane) = 0;
};

/// Throws std::runtime_error when OpenSSL refuses the cipher.
std::unique_ptr<AeadCipher> makeOpenSslCipher(AeadKind kind, AeadUse use, ByteView key);
/// nullptr: the build is without ipsec-mb, the processor without AES instructions, or it is another kind than AES-GCM.
std::unique_ptr<AeadCipher> makeIpsecMbCipher(AeadKind kind, ByteView key);

}  // namespace braid
