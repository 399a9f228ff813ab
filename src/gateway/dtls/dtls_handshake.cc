#include "gateway/dtls/dtls_handshake.h"

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "gateway/dtls/dtls_filter.h"
#include "gateway/dtls/identity.h"
#include "tunnel/wire/handshake_seal.h"
#include "tunnel/wire/pin.h"

namespace braid {

namespace {

constexpr std::string_view kExporterLabel = "EXPORTER-braid-2";  // docs/protocol.md section 2

// OpenSSL gives a received alert as reason 1000 + its number (RFC 5246 section 7.2).
constexpr int kAlertReason = 1000;

std::optional<AeadKind> aeadOf(const SSL* ssl) {
  const SSL_CIPHER* cipher = SSL_get_current_cipher(ssl);
  switch (cipher ? SSL_CIPHER_get_protocol_id(cipher) : 0) {
    case 0xc02b:
      return AeadKind::kAes128Gcm;
    case 0xc02c:
      return AeadKind::kAes256Gcm;
    case 0xcca9:
      return AeadKind::kChaCha20Poly1305;
    default:
      return std::nullopt;
  }
}

// Both sides export the same: two secrets and the session id, which must not be 0.
bool exportSecrets(SSL* ssl, SessionSecrets& out) {
  std::array<uint8_t, 32 + 32 + 4> bytes;
  if (SSL_export_keying_material(ssl, bytes.data(), bytes.size(), kExporterLabel.data(),
                                 kExporterLabel.size(), nullptr, 0, 0) != 1)
    return false;
  std::copy_n(bytes.begin(), 32, out.initiatorSecret.begin());
  std::copy_n(bytes.begin() + 32, 32, out.responderSecret.begin());
  out.sessionId = std::max<uint32_t>(load32(bytes.data() + 64), 1);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return true;
}

// RFC 6347 section 4.1: without the epoch.
uint64_t recordNumber(ByteView record) {
  return uint64_t{load16(&record[5])} << 32 | load32(&record[7]);
}

// A stranger's text for a log line.
std::string printable(ByteView bytes) {
  std::string text;
  for (uint8_t b : bytes.first(std::min<size_t>(bytes.size(), 40)))
    text += b > 32 && b < 127 ? static_cast<char>(b) : '.';
  return text;
}

}  // namespace

bool DtlsShared::accepts(const Pin& pin) const {
  return std::binary_search(acceptedPins.begin(), acceptedPins.end(), pin);
}

void DtlsHandshake::prepare(SSL_CTX* context) {
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, &DtlsHandshake::onCertificate, nullptr);
  SSL_CTX_set_client_hello_cb(context, &DtlsHandshake::onClientHello, nullptr);
  SSL_CTX_set_alpn_select_cb(context, &DtlsHandshake::onAlpn, nullptr);
}

DtlsHandshake::DtlsHandshake(std::shared_ptr<DtlsShared> shared)
    : shared_(std::move(shared)), ssl_(SSL_new(shared_->context.get())) {
  if (!ssl_) throw std::runtime_error("OpenSSL makes no handshake: " + takeOpensslError());
  SSL_set_app_data(ssl_.get(), this);
  BIO* bio = pipe_.makeBio().release();
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_options(ssl_.get(), SSL_OP_NO_QUERY_MTU);
  SSL_set_mtu(ssl_.get(), kMaxHandshakeBody);
  DTLS_set_timer_cb(ssl_.get(), &DtlsHandshake::onRetransmitTime);
  SSL_set_accept_state(ssl_.get());
}

std::unique_ptr<DtlsHandshake> DtlsHandshake::initiate(std::shared_ptr<DtlsShared> shared, const Pin& peer,
                                                       Time now) {
  auto handshake = std::make_unique<DtlsHandshake>(std::move(shared));
  handshake->expected_ = peer;
  SSL_set_connect_state(handshake->ssl_.get());
  handshake->start(now);
  return handshake;
}

std::unique_ptr<DtlsHandshake> DtlsHandshake::accept(std::shared_ptr<DtlsShared> shared, Time now) {
  auto handshake = std::make_unique<DtlsHandshake>(std::move(shared));
  handshake->start(now);
  return handshake;
}

void DtlsHandshake::start(Time now) {
  giveUpAt_ = now + kHandshakeTimeout;
  advance(now);
}

// Who is done answers only who has missed its last flight: an initiator that repeats its own, which ends encrypted and
// under a new record number.
void DtlsHandshake::onDatagram(ByteView bytes, Time now) {
  DtlsFilter::Parts parts = DtlsFilter::split(bytes);
  if (state_ == State::kDone && !parts.sealed.empty() && recordNumber(parts.sealed) > lastSealed_) {
    lastSealed_ = recordNumber(parts.sealed);
    for (const auto& datagram : lastFlight_) pipe_.output().push_back(datagram);
  }
  if (state_ != State::kRunning) return;
  heard_ = true;
  if (!parts.clear.empty()) feed(parts.clear, now);
  if (!parts.sealed.empty()) early_.assign(parts.sealed.begin(), parts.sealed.end());
  if (state_ != State::kRunning || early_.empty() || !awaitsFinished()) return;
  lastSealed_ = recordNumber(early_);
  feed(std::exchange(early_, {}), now);
}

void DtlsHandshake::feed(ByteView bytes, Time now) {
  pipe_.openInput(bytes);
  advance(now);
  pipe_.closeInput();
}

// The other side's ChangeCipherSpec has been read: OpenSSL takes encrypted records, instead of keeping them.
bool DtlsHandshake::awaitsFinished() const {
  OSSL_HANDSHAKE_STATE state = SSL_get_state(ssl_.get());
  return state == TLS_ST_SR_CHANGE || state == TLS_ST_CR_CHANGE;
}

void DtlsHandshake::onTimer(Time now) {
  if (state_ != State::kRunning || now < deadline_) return;
  if (now >= giveUpAt_) {
    return fail(
        heard_
            ? "the handshake was not finished in time: datagrams are lost or refused on the way"
            : "no answer: the peer is down, at another address, has another pin, or is of another release");
  }
  ERR_clear_error();
  if (DTLSv1_handle_timeout(ssl_.get()) < 0) return fail(explain());
  updateDeadline(now);
}

bool DtlsHandshake::pollDatagram(Packet& out) {
  auto& queue = pipe_.output();
  if (queue.empty()) return false;
  std::vector<uint8_t> bytes = std::move(queue.front());
  queue.pop_front();
  if (bytes.size() > out.tailroom()) return pollDatagram(out);
  std::copy(bytes.begin(), bytes.end(), out.append(bytes.size()));
  return true;
}

void DtlsHandshake::advance(Time now) {
  ERR_clear_error();
  int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    finish();
  } else if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
    fail(explain());
  }
  updateDeadline(now);
}

void DtlsHandshake::finish() {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &protocol, &size);
  std::string_view selected(reinterpret_cast<const char*>(protocol), size);
  if (selected != shared_->protocol) return fail("the peer did not choose the protocol " + shared_->protocol);
  // Without the extended master secret a man in the middle can make the exported keys of two sessions equal
  // (RFC 7627).
  if (SSL_get_extms_support(ssl_.get()) != 1) return fail("the peer lacks the extended master secret");
  std::optional<AeadKind> aead = aeadOf(ssl_.get());
  if (!aead || !exportSecrets(ssl_.get(), secrets_)) return fail("no session keys: " + takeOpensslError());
  secrets_.aead = *aead;
  state_ = State::kDone;
  lastFlight_.assign(pipe_.output().begin(), pipe_.output().end());
  ssl_.reset();
}

void DtlsHandshake::fail(std::string why) {
  state_ = State::kFailed;
  error_ = std::move(why);
  ERR_clear_error();
}

void DtlsHandshake::updateDeadline(Time now) {
  timeval left{};
  deadline_ = giveUpAt_;
  if (!ssl_ || DTLSv1_get_timeout(ssl_.get(), &left) != 1) return;
  Duration wait = std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec);
  // OpenSSL would wait until that time comes again.
  if (wait > 2 * std::max(kMaxRetransmit, shared_->retransmit)) return fail("the clock was set back");
  deadline_ = std::min(deadline_, now + wait);
}

std::string DtlsHandshake::explain() {
  if (!refusal_.empty()) return refusal_;
  int reason = ERR_GET_REASON(ERR_peek_last_error());
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return "the peer has no certificate";
  if (reason == SSL_R_NO_SHARED_CIPHER) return "no cipher in common: check 'cipher' at both sides";
  if (reason < kAlertReason || reason >= kAlertReason + 256) return "DTLS: " + takeOpensslError();
  switch (int alert = reason - kAlertReason) {
    case SSL_AD_NO_APPLICATION_PROTOCOL:
      return "the peer speaks another version of the protocol than " + shared_->protocol;
    case SSL_AD_BAD_CERTIFICATE:
      return "the peer does not accept us: its configuration must hold our pin " + formatPin(shared_->ownPin);
    case SSL_AD_HANDSHAKE_FAILURE:
      return "the peer refuses: no cipher in common, or it got no certificate";
    default:
      return std::string("the peer refuses: ") + SSL_alert_desc_string_long(alert);
  }
}

DtlsHandshake& DtlsHandshake::of(const SSL* ssl) {
  return *static_cast<DtlsHandshake*>(SSL_get_app_data(ssl));
}

// Replaces all of OpenSSL's checks of the certificate. That the peer has its key, the handshake proves.
int DtlsHandshake::onCertificate(X509_STORE_CTX* chain, void*) {
  auto ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  X509* certificate = X509_STORE_CTX_get0_cert(chain);
  if (certificate && of(ssl).checkPeer(pinOf(certificate))) return 1;
  X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REJECTED);  // sent as the alert bad_certificate
  return 0;
}

bool DtlsHandshake::checkPeer(const Pin& seen) {
  secrets_.peer = seen;
  if (expected_ ? seen == *expected_ : shared_->accepts(seen)) return true;
  refusal_ = expected_
                 ? "the peer has the pin " + formatPin(seen) + ", expected is " + formatPin(*expected_)
                 : "a stranger with the pin " + formatPin(seen) + "; to let him in, add a peer with this pin";
  return false;
}

// OpenSSL lets a hello without ALPN pass.
int DtlsHandshake::onClientHello(SSL* ssl, int* alert, void*) {
  const unsigned char* extension = nullptr;
  size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &extension, &size) ==
      1)
    return SSL_CLIENT_HELLO_SUCCESS;
  of(ssl).refusal_ = "the peer names no protocol, we speak " + of(ssl).shared_->protocol;
  *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
  return SSL_CLIENT_HELLO_ERROR;
}

int DtlsHandshake::onAlpn(SSL* ssl, const unsigned char** out, unsigned char* outSize,
                          const unsigned char* in, unsigned inSize, void*) {
  DtlsHandshake& self = of(ssl);
  const std::string& own = self.shared_->protocol;
  std::string offered;
  Reader reader({in, inSize});
  while (reader.remaining() > 0) {
    ByteView name = reader.take(reader.u8());
    if (std::equal(name.begin(), name.end(), own.begin(), own.end())) {
      *out = name.data();
      *outSize = static_cast<unsigned char>(name.size());
      return SSL_TLSEXT_ERR_OK;
    }
    if (offered.size() < 80) offered += " " + printable(name);
  }
  self.refusal_ = "no protocol version in common: the peer speaks" + offered + ", we speak " + own;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

unsigned DtlsHandshake::onRetransmitTime(SSL* ssl, unsigned microseconds) {
  auto count = [](Duration d) {
    return static_cast<unsigned>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
  };
  if (microseconds == 0) return count(of(ssl).shared_->retransmit);
  return std::min(2 * microseconds, count(kMaxRetransmit));
}

}  // namespace braid
