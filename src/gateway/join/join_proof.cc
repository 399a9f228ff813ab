#include "gateway/join/join_proof.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "gateway/dtls/openssl_handle.h"

namespace braid {

namespace {

using DigestHandle = std::unique_ptr<EVP_MD_CTX, OpensslFree<EVP_MD_CTX_free>>;

KeyHandle privateKey(const InvitationSecret& secret) {
  KeyHandle key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret.bytes.data(), secret.bytes.size()));
  if (!key) throw std::runtime_error("OpenSSL has no Ed25519: " + takeOpensslError());
  return key;
}

std::vector<uint8_t> textOf(const JoinStatement& statement) {
  static constexpr std::string_view kContext = "braid join 1";
  std::vector<uint8_t> out(kContext.begin(), kContext.end());
  for (ByteView part : {ByteView(statement.binding), ByteView(statement.edge),
                        ByteView(statement.concentrator), statement.wish})
    out.insert(out.end(), part.begin(), part.end());
  return out;
}

}  // namespace

InvitationKey publicKeyOf(const InvitationSecret& secret) {
  InvitationKey out;
  size_t size = out.size();
  if (EVP_PKEY_get_raw_public_key(privateKey(secret).get(), out.data(), &size) != 1 || size != out.size())
    throw std::runtime_error("OpenSSL gives no Ed25519 key: " + takeOpensslError());
  return out;
}

InvitationId idOf(const InvitationKey& key) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> hash;
  SHA256(key.data(), key.size(), hash.data());
  InvitationId out;
  std::copy_n(hash.begin(), out.size(), out.begin());
  return out;
}

JoinSignature signJoin(const InvitationSecret& secret, const JoinStatement& statement) {
  JoinSignature out;
  size_t size = out.size();
  std::vector<uint8_t> text = textOf(statement);
  KeyHandle key = privateKey(secret);
  DigestHandle context(EVP_MD_CTX_new());
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), out.data(), &size, text.data(), text.size()) != 1 || size != out.size())
    throw std::runtime_error("OpenSSL does not sign by Ed25519: " + takeOpensslError());
  return out;
}

bool verifyJoin(const InvitationKey& key, const JoinSignature& signature, const JoinStatement& statement) {
  std::vector<uint8_t> text = textOf(statement);
  KeyHandle handle(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()));
  DigestHandle context(EVP_MD_CTX_new());
  bool good =
      handle && context &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, handle.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.data(), signature.size(), text.data(), text.size()) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace braid
