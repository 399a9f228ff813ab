#include "tunnel/wire/aead.h"

#ifdef BRAID_IPSEC_MB
#define NO_COMPAT_IMB_API_053  // do not define the names without a prefix
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "tunnel/wire/header.h"
#endif

namespace braid {

#ifdef BRAID_IPSEC_MB

namespace {

/// The library's functions for this processor; nullptr when it has no AES instructions. Made once,
/// and not changed afterwards.
const IMB_MGR* processorFunctions() {
  static const IMB_MGR* const functions = []() -> const IMB_MGR* {
    IMB_MGR* made = alloc_mb_mgr(0);
    if (!made) return nullptr;
    init_mb_mgr_auto(made, nullptr);
    constexpr uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
    if (imb_get_errno(made) == 0 && (made->features & kNeeded) == kNeeded) return made;
    free_mb_mgr(made);
    return nullptr;
  }();
  return functions;
}

class IpsecMbCipher final : public AeadCipher {
 public:
  IpsecMbCipher(const IMB_MGR& mb, AeadKind kind, ByteView key)
      : calls_(kind == AeadKind::kAes128Gcm ? Calls{mb.gcm128_init, mb.gcm128_enc_update,
                                                    mb.gcm128_enc_finalize, mb.gcm128_dec}
                                            : Calls{mb.gcm256_init, mb.gcm256_enc_update,
                                                    mb.gcm256_enc_finalize, mb.gcm256_dec}) {
    (kind == AeadKind::kAes128Gcm ? mb.gcm128_pre : mb.gcm256_pre)(key.data(), &key_);
  }
  ~IpsecMbCipher() override { OPENSSL_cleanse(&key_, sizeof key_); }

  bool seal(const AeadNonce& nonce, ByteView header, std::span<const ByteView> pieces,
            uint8_t* out) override {
    gcm_context_data context;
    calls_.init(&key_, &context, nonce.data(), header.data(), header.size());
    for (ByteView piece : pieces) {
      if (piece.empty()) continue;
      calls_.encrypt(&key_, &context, out, piece.data(), piece.size());
      out += piece.size();
    }
    calls_.finish(&key_, &context, out, kTagSize);
    return true;
  }

  bool open(const AeadNonce& nonce, ByteView header, ByteSpan text) override {
    gcm_context_data context;
    std::array<uint8_t, kTagSize> tag;
    calls_.open(&key_, &context, text.data(), text.data(), text.size(), nonce.data(), header.data(),
                header.size(), tag.data(), tag.size());
    return CRYPTO_memcmp(tag.data(), text.data() + text.size(), tag.size()) == 0;
  }

 private:
  struct Calls {
    aes_gcm_init_t init;
    aes_gcm_enc_dec_update_t encrypt;
    aes_gcm_enc_dec_finalize_t finish;
    aes_gcm_enc_dec_t open;
  };
  Calls calls_;
  alignas(64) gcm_key_data key_;
};

}  // namespace

std::unique_ptr<AeadCipher> makeIpsecMbCipher(AeadKind kind, ByteView key) {
  const IMB_MGR* functions = kind == AeadKind::kChaCha20Poly1305 ? nullptr : processorFunctions();
  return functions ? std::make_unique<IpsecMbCipher>(*functions, kind, key) : nullptr;
}

#else

std::unique_ptr<AeadCipher> makeIpsecMbCipher(AeadKind, ByteView) {
  return nullptr;
}

#endif

}  // namespace braid
