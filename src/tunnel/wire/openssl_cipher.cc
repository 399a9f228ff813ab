#include <openssl/evp.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "tunnel/wire/aead.h"

namespace braid {

namespace {

class OpenSslCipher final : public AeadCipher {
 public:
  OpenSslCipher(AeadKind kind, AeadUse use, ByteView key) : context_(EVP_CIPHER_CTX_new()) {
    const AeadNonce none{};
    EVP_CIPHER* cipher = EVP_CIPHER_fetch(nullptr, aeadName(kind), nullptr);
    bool good = cipher && context_ &&
                EVP_CipherInit_ex2(context_.get(), cipher, key.data(), none.data(),
                                   use == AeadUse::kSeal, nullptr) == 1;
    EVP_CIPHER_free(cipher);
    if (!good)
      throw std::runtime_error(std::string("OpenSSL does not give the cipher ") + aeadName(kind));
  }

  bool seal(const AeadNonce& nonce, ByteView header, std::span<const ByteView> pieces,
            uint8_t* out) override {
    if (!start(nonce, header)) return false;
    for (ByteView piece : pieces) {
      if (!update(out, piece)) return false;
      out += piece.size();
    }
    int none = 0;
    return EVP_CipherFinal_ex(context_.get(), out, &none) == 1 &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize, out) == 1;
  }

  bool open(const AeadNonce& nonce, ByteView header, ByteSpan text) override {
    uint8_t* tag = text.data() + text.size();
    int none = 0;
    return start(nonce, header) && update(text.data(), text) &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagSize, tag) == 1 &&
           EVP_CipherFinal_ex(context_.get(), tag, &none) == 1;
  }

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const {
      EVP_CIPHER_CTX_free(context);
    }  // clears the expanded key
  };

  // Sets nonce and header. False when OpenSSL fails.
  bool start(const AeadNonce& nonce, ByteView header) {
    return EVP_CipherInit_ex2(context_.get(), nullptr, nullptr, nonce.data(), -1, nullptr) == 1 &&
           update(nullptr, header);
  }
  bool update(uint8_t* out, ByteView in) {
    int written = 0;
    return in.empty() || EVP_CipherUpdate(context_.get(), out, &written, in.data(),
                                          static_cast<int>(in.size())) == 1;
  }

  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
};

}  // namespace

std::unique_ptr<AeadCipher> makeOpenSslCipher(AeadKind kind, AeadUse use, ByteView key) {
  return std::make_unique<OpenSslCipher>(kind, use, key);
}

}  // namespace braid
