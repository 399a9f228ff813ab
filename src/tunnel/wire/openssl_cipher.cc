#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunnel/wire/aead.h"

namespace braid {

namespace {

class OpenSslCipher final : public AeadCipher {
 public:
  OpenSslCipher(AeadKind kind, AeadUse use, ByteView key) : kind_(kind), use_(use) {
    std::copy(key.begin(), key.end(), key_.begin());
    contexts_[0] = makeContext();
    if (contexts_[0]) return;
    OPENSSL_cleanse(key_.data(), key_.size());
    throw std::runtime_error(std::string("OpenSSL does not give the cipher ") + aeadName(kind));
  }
  ~OpenSslCipher() override { OPENSSL_cleanse(key_.data(), key_.size()); }

  bool seal(const AeadNonce& nonce, ByteView header, std::span<const ByteView> pieces, uint8_t* out,
            unsigned lane) override {
    EVP_CIPHER_CTX* context = start(nonce, header, lane);
    if (!context) return false;
    for (ByteView piece : pieces) {
      if (!update(context, out, piece)) return false;
      out += piece.size();
    }
    int none = 0;
    return EVP_CipherFinal_ex(context, out, &none) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagSize, out) == 1;
  }

  bool open(const AeadNonce& nonce, ByteView header, ByteSpan text, unsigned lane) override {
    EVP_CIPHER_CTX* context = start(nonce, header, lane);
    uint8_t* tag = text.data() + text.size();
    int none = 0;
    return context && update(context, text.data(), text) &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagSize, tag) == 1 &&
           EVP_CipherFinal_ex(context, tag, &none) == 1;
  }

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const {
      EVP_CIPHER_CTX_free(context);
    }  // clears the expanded key
  };
  using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;

  // Empty when OpenSSL refuses.
  Context makeContext() const {
    const AeadNonce none{};
    Context context(EVP_CIPHER_CTX_new());
    EVP_CIPHER* cipher = EVP_CIPHER_fetch(nullptr, aeadName(kind_), nullptr);
    bool good = cipher && context &&
                EVP_CipherInit_ex2(context.get(), cipher, key_.data(), none.data(),
                                   use_ == AeadUse::kSeal, nullptr) == 1;
    EVP_CIPHER_free(cipher);
    return good ? std::move(context) : nullptr;
  }

  // The lane's context, set up with nonce and header; nullptr when OpenSSL fails.
  EVP_CIPHER_CTX* start(const AeadNonce& nonce, ByteView header, unsigned lane) {
    Context& context = contexts_[lane];
    if (!context) context = makeContext();
    bool good =
        context &&
        EVP_CipherInit_ex2(context.get(), nullptr, nullptr, nonce.data(), -1, nullptr) == 1 &&
        update(context.get(), nullptr, header);
    return good ? context.get() : nullptr;
  }
  static bool update(EVP_CIPHER_CTX* context, uint8_t* out, ByteView in) {
    int written = 0;
    return in.empty() ||
           EVP_CipherUpdate(context, out, &written, in.data(), static_cast<int>(in.size())) == 1;
  }

  std::array<Context, kLanes>
      contexts_;                   ///< the first is made at once, the others on their first use
  std::array<uint8_t, 32> key_{};  ///< for the others: copying the first one would be a race
  AeadKind kind_;
  AeadUse use_;
};

}  // namespace

std::unique_ptr<AeadCipher> makeOpenSslCipher(AeadKind kind, AeadUse use, ByteView key) {
  return std::make_unique<OpenSslCipher>(kind, use, key);
}

}  // namespace braid
