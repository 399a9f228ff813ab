#include "gateway/join/invitation.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "gateway/config/config_reader.h"
#include "gateway/config/units.h"
#include "gateway/dtls/identity.h"
#include "inet/addresses.h"

namespace braid {

namespace {

constexpr size_t kTextOf32 = 43;           // characters of base64url without padding
constexpr int64_t kLatest = 253402300799;  // 9999-12-31T23:59:59Z

std::string base64Url(const std::array<uint8_t, 32>& bytes) {
  std::array<unsigned char, 45> text;
  EVP_EncodeBlock(text.data(), bytes.data(), bytes.size());
  std::string out(reinterpret_cast<const char*>(text.data()), kTextOf32);
  OPENSSL_cleanse(text.data(), text.size());
  std::ranges::replace(out, '+', '-');
  std::ranges::replace(out, '/', '_');
  return out;
}

// False: malformed. Unused bits are checked by parseInvitation(), which compares the whole line.
bool fromBase64Url(std::string_view text, std::array<uint8_t, 32>& out) {
  if (text.size() != kTextOf32) return false;
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  plain += '=';
  std::array<unsigned char, 33> bytes;
  bool ok = EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(plain.data()),
                            static_cast<int>(plain.size())) == static_cast<int>(bytes.size());
  std::copy_n(bytes.begin(), out.size(), out.begin());
  OPENSSL_cleanse(bytes.data(), bytes.size());
  OPENSSL_cleanse(plain.data(), plain.size());
  return ok;
}

std::string checkOf(std::string_view text) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> hash;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return toHex(std::span(hash).first(4));
}

std::optional<int64_t> parseUtc(std::string_view text) {
  std::tm t{};
  char end = 0;
  std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%c", &t.tm_year, &t.tm_mon, &t.tm_mday,
                  &t.tm_hour, &t.tm_min, &t.tm_sec, &end) != 7 ||
      end != 'Z')
    return std::nullopt;
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  int64_t seconds = ::timegm(&t);
  if (seconds < 0 || formatUtc(seconds) != text) return std::nullopt;
  return seconds;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find(at);
    out.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? 0 : end + 1);
  }
  return out;
}

constexpr const char* kDamaged =
    "the invitation is not whole: a part is missing or was changed on the way; copy the whole line "
    "again";

}  // namespace

InvitationSecret::~InvitationSecret() {
  OPENSSL_cleanse(bytes.data(), bytes.size());
}

InvitationSecret InvitationSecret::draw() {
  InvitationSecret out;
  if (RAND_priv_bytes(out.bytes.data(), static_cast<int>(out.bytes.size())) != 1)
    throw std::runtime_error("OpenSSL has no randomness for a secret");
  return out;
}

std::string formatUtc(int64_t unixSeconds) {
  std::time_t moment = std::clamp<int64_t>(unixSeconds, 0, kLatest);
  std::tm utc{};
  std::array<char, 32> text{};
  ::gmtime_r(&moment, &utc);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::optional<HostPort> parseHostPort(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::optional<uint64_t> port = parseNumber(text.substr(colon + 1));
  if (!port || *port == 0 || *port > 65535) return std::nullopt;
  if (std::optional<Endpoint> numeric = Endpoint::parse(text))
    return HostPort{numeric->address.toString(), numeric->port};
  std::string host(text.substr(0, colon));
  if (!isHostName(host)) return std::nullopt;
  return HostPort{std::move(host), static_cast<uint16_t>(*port)};
}

std::string formatHostPort(const HostPort& address) {
  bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string formatInvitation(const Invitation& invitation) {
  std::string text(kInvitationPrefix);
  for (const HostPort& address : invitation.addresses)
    text += (&address == invitation.addresses.data() ? "" : ",") + formatHostPort(address);
  text += "/" + base64Url(invitation.pin) + "/" + base64Url(invitation.secret.bytes) + "/" +
          formatUtc(invitation.expires);
  return text + "/" + checkOf(text);
}

std::variant<Invitation, std::string> parseInvitation(std::string_view line) {
  std::string text;
  for (char c : line.substr(0, kMaxInvitationLine)) {
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') text += c;
  }
  if (text.empty())
    return "there is no invitation; give the line that 'braidctl invite' printed at the "
           "concentrator";
  if (!text.starts_with(kAnyInvitation.substr(0, text.size())) ||
      text.size() < kAnyInvitation.size())
    return "this is no invitation; give the line that 'braidctl invite' printed at the "
           "concentrator";
  if (!text.starts_with(kInvitationPrefix.substr(0, text.size())))
    return "the invitation is of another release of Braid; bring both gateways up to date";
  std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() != 6 || line.size() > kMaxInvitationLine ||
      parts[5] != checkOf(std::string_view(text).substr(0, text.rfind('/'))))
    return kDamaged;
  Invitation out;
  for (std::string_view part : split(parts[1], ',')) {
    std::optional<HostPort> address = parseHostPort(part);
    if (!address || out.addresses.size() == kMaxInvitationAddresses) return kDamaged;
    out.addresses.push_back(std::move(*address));
  }
  std::optional<int64_t> expires = parseUtc(parts[4]);
  if (!fromBase64Url(parts[2], out.pin) || !fromBase64Url(parts[3], out.secret.bytes) || !expires)
    return kDamaged;
  out.expires = *expires;
  if (formatInvitation(out) != text) return kDamaged;
  return out;
}

namespace {

using DigestHandle = std::unique_ptr<EVP_MD_CTX, OpensslFree<EVP_MD_CTX_free>>;

KeyHandle privateKey(const InvitationSecret& secret) {
  KeyHandle key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret.bytes.data(),
                                             secret.bytes.size()));
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
  if (EVP_PKEY_get_raw_public_key(privateKey(secret).get(), out.data(), &size) != 1 ||
      size != out.size())
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
      EVP_DigestSign(context.get(), out.data(), &size, text.data(), text.size()) != 1 ||
      size != out.size())
    throw std::runtime_error("OpenSSL does not sign by Ed25519: " + takeOpensslError());
  return out;
}

bool verifyEd25519(const InvitationKey& key, const JoinSignature& signature, ByteView text) {
  KeyHandle handle(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.data(), key.size()));
  DigestHandle context(EVP_MD_CTX_new());
  bool good = handle && context &&
              EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, handle.get()) == 1 &&
              EVP_DigestVerify(context.get(), signature.data(), signature.size(), text.data(),
                               text.size()) == 1;
  ERR_clear_error();
  return good;
}

bool verifyJoin(const InvitationKey& key, const JoinSignature& signature,
                const JoinStatement& statement) {
  return verifyEd25519(key, signature, textOf(statement));
}

}  // namespace braid
