#include "gateway/dtls/dtls.h"

#include <openssl/rand.h>
#include <sys/auxv.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#endif

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include "gateway/dtls/dtls_handshake.h"

namespace braid {

namespace {

// RFC 6347 sections 4.1 and 4.2.2.
constexpr size_t kRecordHeader = 13;
constexpr size_t kMessageHeader = 12;
constexpr uint8_t kHandshake = 22;

// Whether the handshake messages, or fragments of messages, in a record are at most kMaxMessage
// long.
bool areShort(ByteView body) {
  while (body.size() >= kMessageHeader) {
    size_t message = load32(body.data()) & 0xffffff;
    size_t fragment = load32(&body[8]) & 0xffffff;
    if (message > DtlsFilter::kMaxMessage) return false;
    body = body.subspan(kMessageHeader);
    body = body.subspan(std::min(fragment, body.size()));
  }
  return body.empty();
}

}  // namespace

DtlsFilter::Parts DtlsFilter::split(ByteView datagram) {
  size_t clear = 0, end = 0;
  while (datagram.size() - end >= kRecordHeader) {
    ByteView rest = datagram.subspan(end);
    size_t size = kRecordHeader + load16(&rest[11]);
    bool isClear = load16(&rest[3]) == 0;
    if (size > rest.size() || (isClear && end > clear)) break;
    if (isClear && rest[0] == kHandshake &&
        !areShort(rest.subspan(kRecordHeader, size - kRecordHeader)))
      break;
    end += size;
    if (isClear) clear = end;
  }
  ByteView sealed = datagram.subspan(clear, end - clear);
  return {datagram.first(clear), sealed.size() <= kMaxSealed ? sealed : ByteView{}};
}

namespace {

constexpr const char* kAes128 = "ECDHE-ECDSA-AES128-GCM-SHA256";
constexpr const char* kAes256 = "ECDHE-ECDSA-AES256-GCM-SHA384";
constexpr const char* kChaCha = "ECDHE-ECDSA-CHACHA20-POLY1305";
constexpr const char* kGroups = "X25519:P-256";
constexpr const char* kSignatures = "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512";
// Bytes of the peer's certificate message; this implementation's has about 500.
constexpr long kMaxCertificate = DtlsFilter::kMaxMessage;

std::string suites(const DtlsOptions& options) {
  if (options.cipher == AeadKind::kAes128Gcm) return kAes128;
  if (options.cipher == AeadKind::kAes256Gcm) return kAes256;
  if (options.cipher == AeadKind::kChaCha20Poly1305) return kChaCha;
  std::string aes = std::string(kAes128) + ":" + kAes256;
  return options.hasAes.value_or(processorHasAes()) ? aes + ":" + kChaCha : kChaCha + (":" + aes);
}

// The responder's order of preference is used, except when the initiator puts ChaCha20 first. So
// the side without AES instructions decides.
constexpr uint64_t kSslOptions = SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                 SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_QUERY_MTU;

SslContextHandle makeContext(const Identity& identity, const DtlsOptions& options) {
  SslContextHandle handle(SSL_CTX_new(DTLS_method()));
  SSL_CTX* context = handle.get();
  bool ok = context && SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) == 1 &&
            SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION) == 1 &&
            SSL_CTX_set_cipher_list(context, suites(options).c_str()) == 1 &&
            SSL_CTX_set1_groups_list(context, kGroups) == 1 &&
            SSL_CTX_set1_sigalgs_list(context, kSignatures) == 1 &&
            SSL_CTX_use_certificate(context, identity.certificate.get()) == 1 &&
            SSL_CTX_use_PrivateKey(context, identity.key.get()) == 1;
  if (!ok)
    throw std::runtime_error("OpenSSL does not give DTLS 1.2 as we need it: " + takeOpensslError());
  SSL_CTX_set_options(context, kSslOptions);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, kMaxCertificate);
  SSL_CTX_set_read_ahead(context, 1);
  DtlsHandshake::prepare(context);
  return handle;
}

}  // namespace

// The generators of the threads notice that their common source has a new seed. RAND_poll() would
// do nothing in some releases of OpenSSL 3.0.
void renewOpensslRandomness(const RandomKey& with) {
  EVP_RAND_CTX* primary = RAND_get0_primary(nullptr);
  if (!primary || EVP_RAND_reseed(primary, 0, nullptr, 0, with.data(), with.size()) != 1)
    throw std::runtime_error("OpenSSL takes no randomness: " + takeOpensslError());
}

bool processorHasAes() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return false;
#endif
}

DtlsProvider::DtlsProvider(const Identity& identity, const DtlsOptions& options)
    : shared_(std::make_shared<DtlsShared>()) {
  shared_->context = makeContext(identity, options);
  shared_->ownPin = identity.pin;
  if (options.versions.empty()) throw std::runtime_error("DTLS: no version of the protocol");
  shared_->versions = options.versions;
  std::ranges::sort(shared_->versions, std::greater());
  shared_->retransmit = options.retransmit;
}

DtlsProvider::~DtlsProvider() = default;

const Pin& DtlsProvider::ownPin() const {
  return shared_->ownPin;
}

std::unique_ptr<Handshake> DtlsProvider::initiate(const Pin& peer, Time now) {
  return DtlsHandshake::initiate(shared_, peer, now);
}

std::unique_ptr<Handshake> DtlsProvider::accept(Time now) {
  return DtlsHandshake::accept(shared_, now);
}

void DtlsProvider::setAcceptedPins(std::vector<Pin> pins) {
  std::sort(pins.begin(), pins.end());
  shared_->acceptedPins = std::move(pins);
}

void DtlsProvider::setJoinHandler(JoinHandler* handler) {
  shared_->handler = handler;
}

void DtlsProvider::setJoinAsker(JoinAsker* asker) {
  shared_->asker = asker;
}

}  // namespace braid
