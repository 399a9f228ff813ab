// In place of the library for AES-GCM (src/tunnel/wire/aead_cipher.h): a cipher that copies and checks nothing, for a
// program that tells what everything but the cipher costs. Linked into that simulator only.

#include <algorithm>

#include "tunnel/wire/aead_cipher.h"
#include "tunnel/wire/header.h"

namespace braid {

namespace {

class NullCipher final : public AeadCipher {
 public:
  bool seal(const AeadNonce&, ByteView, std::span<const ByteView> pieces, uint8_t* out, unsigned) override {
    for (ByteView piece : pieces) out = std::copy(piece.begin(), piece.end(), out);
    std::fill_n(out, kTagSize, uint8_t{0});
    return true;
  }
  bool open(const AeadNonce&, ByteView, ByteSpan, unsigned) override { return true; }
};

}  // namespace

std::unique_ptr<AeadCipher> makeIpsecMbCipher(AeadKind, ByteView) {
  return std::make_unique<NullCipher>();
}

}  // namespace braid
