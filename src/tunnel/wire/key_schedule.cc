#include "tunnel/wire/key_schedule.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace braid {

namespace {

// RFC 9001 appendix B.1: 2^28 packets of up to 2^11 bytes, or 2^23 of up to 2^16, keep the
// attacker's advantage below 2^-57. The product of number and size is what counts. The limit here
// holds for datagrams of up to 2^14 bytes.
constexpr uint64_t kGcmMaxSealed = uint64_t{1} << 25;
constexpr uint64_t kGcmMaxFailedOpens = uint64_t{1} << 52;  // RFC 9001 section 6.6
constexpr uint64_t kChaChaMaxSealed = uint64_t{1}
                                      << 62;  // RFC 9001 section 6.6: the packet number space
constexpr uint64_t kChaChaMaxFailedOpens = uint64_t{1} << 36;  // RFC 9001 section 6.6

// Fetched once per process, because a fetch takes locks and a search.
EVP_KDF* hkdf() {
  static const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), &EVP_KDF_free);
  return kdf.get();
}

// The cipher's fixed limits on sealing and opening, or lower ones where the caller asks for them.
KeyLimits bounded(KeyLimits limits, AeadKind kind) {
  bool chacha = kind == AeadKind::kChaCha20Poly1305;
  auto lower = [](uint64_t asked, uint64_t bound) {
    return asked == 0 ? bound : std::min(asked, bound);
  };
  limits.maxSealed = lower(limits.maxSealed, chacha ? kChaChaMaxSealed : kGcmMaxSealed);
  limits.maxFailedOpens =
      lower(limits.maxFailedOpens, chacha ? kChaChaMaxFailedOpens : kGcmMaxFailedOpens);
  return limits;
}

void advanceSecret(TrafficSecret& secret) {
  TrafficSecret next;
  hkdfExpandLabel(secret, "braid ku", next);
  secret = next;
  OPENSSL_cleanse(next.data(), next.size());
}

}  // namespace

void hkdfExpandLabel(ByteView secret, std::string_view label, ByteSpan out) {
  static constexpr std::string_view kPrefix = "tls13 ";
  std::array<uint8_t, 64> info;
  Writer w(info);
  w.u16(static_cast<uint16_t>(out.size()));
  w.u8(static_cast<uint8_t>(kPrefix.size() + label.size()));
  for (std::string_view s : {kPrefix, label})
    w.bytes({reinterpret_cast<const uint8_t*>(s.data()), s.size()});
  w.u8(0);
  std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(hkdf()),
                                                                    &EVP_KDF_CTX_free);
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  char digest[] = "SHA256";
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<uint8_t*>(secret.data()),
                                        secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), w.size()),
      OSSL_PARAM_construct_end()};
  if (!w.ok() || !context || EVP_KDF_derive(context.get(), out.data(), out.size(), params) != 1)
    throw std::runtime_error("OpenSSL does not derive keys by HKDF-SHA256");
}

void hkdfExtract(ByteView salt, ByteView keyMaterial, TrafficSecret& out) {
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), salt.data(), static_cast<int>(salt.size()), keyMaterial.data(),
            keyMaterial.size(), out.data(), &size))
    throw std::runtime_error("OpenSSL does not give HMAC-SHA256");
}

SessionSecrets mixedWith(const PresharedKey& key, const SessionSecrets& exported) {
  SessionSecrets mixed = exported;
  hkdfExtract(key.bytes, exported.initiatorSecret, mixed.initiatorSecret);
  hkdfExtract(key.bytes, exported.responderSecret, mixed.responderSecret);
  return mixed;
}

KeySchedule::KeySchedule(const SessionSecrets& secrets, Role role, const KeyLimits& limits,
                         Time now)
    : kind_(secrets.aead), limits_(bounded(limits, secrets.aead)), epochStart_(now) {
  bool initiator = role == Role::kInitiator;
  sendSecret_ = initiator ? secrets.initiatorSecret : secrets.responderSecret;
  openSecret_ = initiator ? secrets.responderSecret : secrets.initiatorSecret;
  takeSealingKeys();
  current_ = makeAead(Aead::Use::kOpen, openSecret_);
  prepareNext();
}

KeySchedule::~KeySchedule() {
  OPENSSL_cleanse(sendSecret_.data(), sendSecret_.size());
  OPENSSL_cleanse(openSecret_.data(), openSecret_.size());
}

Aead KeySchedule::makeAead(Aead::Use use, const TrafficSecret& secret) const {
  std::array<uint8_t, 32> key;
  std::array<uint8_t, Aead::kIvSize> iv;
  ByteSpan keyBytes = ByteSpan(key).first(aeadKeySize(kind_));
  hkdfExpandLabel(secret, "braid key", keyBytes);
  hkdfExpandLabel(secret, "braid iv", iv);
  Aead aead(kind_, use, keyBytes, iv);
  OPENSSL_cleanse(key.data(), key.size());
  OPENSSL_cleanse(iv.data(), iv.size());
  return aead;
}

// Only a side that has entered an epoch seals under it, so its sealing keys are not needed before.
void KeySchedule::takeSealingKeys() {
  seal_ = makeAead(Aead::Use::kSeal, sendSecret_);
  advanceSecret(sendSecret_);
}

// The keys that open the next epoch are made in advance. So a datagram that does not open takes the
// same time whatever epoch it names.
void KeySchedule::prepareNext() {
  advanceSecret(openSecret_);
  next_ = makeAead(Aead::Use::kOpen, openSecret_);
}

void KeySchedule::advance(Time now) {
  previous_ = std::move(current_);
  current_ = std::move(next_);
  takeSealingKeys();
  ++epoch_;
  sealed_ = 0;
  confirmed_ = false;
  epochStart_ = now;
  followFrom_ = now + limits_.keepPrevious / 2;
  dropPreviousAt_ = kNever;
  prepareNext();
}

// The peer has changed to this epoch, too. Datagrams that it sent before may still be on their way,
// so the time for which the old keys are kept starts now.
void KeySchedule::confirm(Time now) {
  confirmed_ = true;
  if (previous_) dropPreviousAt_ = now + limits_.keepPrevious;
}

bool KeySchedule::seal(SubflowId subflow, PacketNumber packetNumber, ByteView header,
                       std::span<const ByteView> pieces, uint8_t* out) {
  if (spent()) return false;
  ++sealed_;
  return seal_.seal(subflow.value(), packetNumber.value(), header, pieces, out);
}

// A datagram that is two epochs ahead, or of an epoch whose keys are gone, is tried under the next
// keys, so that it costs equal work, and then refused.
Aead& KeySchedule::keysFor(unsigned ahead) {
  return ahead == 0 ? current_ : ahead == 3 && previous_ ? previous_ : next_;
}

bool KeySchedule::open(uint8_t epochBits, SubflowId subflow, PacketNumber packetNumber,
                       ByteView header, ByteSpan ciphertextAndTag, Time now) {
  if (spent()) return false;
  onTimer(now);
  unsigned ahead = (epochBits - epoch_) & 3;
  Aead& keys = keysFor(ahead);
  // A datagram of the next epoch that comes too early is refused, but only after equal work.
  bool known = &keys != &next_ || (ahead == 1 && now >= followFrom_);
  bool good = keys.open(subflow.value(), packetNumber.value(), header, ciphertextAndTag);
  if (!good || !known) {
    ++failedOpens_;
    return false;
  }
  if (ahead == 1) advance(now);
  if (ahead <= 1 && !confirmed_) confirm(now);
  return true;
}

bool KeySchedule::wantsRekey(Time now) const {
  bool isOld = limits_.rekeyAfter > Duration{} && now - epochStart_ >= limits_.rekeyAfter;
  return mayRekey() && (sealed_ >= limits_.rekeyPackets || isOld);
}

bool KeySchedule::rekey(Time now) {
  if (!mayRekey()) return false;
  advance(now);
  return true;
}

void KeySchedule::onTimer(Time now) {
  if (now < dropPreviousAt_) return;
  previous_ = {};
  dropPreviousAt_ = kNever;
}

void KeySchedule::setRekey(uint64_t packets, Duration after) {
  limits_.rekeyPackets = packets;
  limits_.rekeyAfter = after;
}

}  // namespace braid
