#include "gateway/dtls/dtls_handshake.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <utility>

#include "gateway/dtls/dtls.h"
#include "gateway/dtls/identity.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid {

namespace {

constexpr std::string_view kExporterLabel =
    "EXPORTER-braid-";  // followed by the version; docs/protocol.md section 2
constexpr std::string_view kJoinLabel = "EXPORTER-braid-join-1";  // docs/protocol.md section 14

// OpenSSL reports a received alert as reason 1000 + its number (RFC 5246 section 7.2).
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

// Exports the same bytes on both sides: two secrets and the session id, which must not be 0.
bool exportSecrets(SSL* ssl, SessionSecrets& out) {
  std::array<uint8_t, 32 + 32 + 4> bytes;
  std::string label = std::string(kExporterLabel) + std::to_string(out.version);
  if (SSL_export_keying_material(ssl, bytes.data(), bytes.size(), label.data(), label.size(),
                                 nullptr, 0, 0) != 1)
    return false;
  std::copy_n(bytes.begin(), 32, out.initiatorSecret.begin());
  std::copy_n(bytes.begin() + 32, 32, out.responderSecret.begin());
  out.sessionId = std::max<uint32_t>(load32(bytes.data() + 64), 1);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return true;
}

bool exportJoin(SSL* ssl, JoinSecrets& out) {
  std::array<uint8_t, 3 * 32> bytes;
  if (SSL_export_keying_material(ssl, bytes.data(), bytes.size(), kJoinLabel.data(),
                                 kJoinLabel.size(), nullptr, 0, 0) != 1)
    return false;
  std::copy_n(bytes.begin(), 32, out.initiatorSecret.begin());
  std::copy_n(bytes.begin() + 32, 32, out.responderSecret.begin());
  std::copy_n(bytes.begin() + 64, 32, out.binding.begin());
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return true;
}

// RFC 6347 section 4.1: the record's sequence number without the epoch.
uint64_t recordNumber(ByteView record) {
  return uint64_t{load16(&record[5])} << 32 | load32(&record[7]);
}

}  // namespace

bool DtlsShared::accepts(const Pin& pin) const {
  return std::binary_search(acceptedPins.begin(), acceptedPins.end(), pin);
}

DtlsHandshake::DtlsHandshake(std::shared_ptr<DtlsShared> shared)
    : shared_(std::move(shared)),
      ssl_(SSL_new(shared_->context.get())),
      retransmit_(shared_->retransmit) {
  if (!ssl_) throw std::runtime_error("OpenSSL makes no handshake: " + takeOpensslError());
  SSL_set_app_data(ssl_.get(), this);
  BIO* bio = pipe_.makeBio().release();
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_options(ssl_.get(), SSL_OP_NO_QUERY_MTU);
  SSL_set_mtu(ssl_.get(), kMaxHandshakeBody);
  DTLS_set_timer_cb(ssl_.get(), &DtlsHandshake::onRetransmitTime);
  SSL_set_accept_state(ssl_.get());
}

std::unique_ptr<DtlsHandshake> DtlsHandshake::initiate(std::shared_ptr<DtlsShared> shared,
                                                       const Pin& peer, Time now) {
  auto handshake = std::make_unique<DtlsHandshake>(std::move(shared));
  handshake->expected_ = peer;
  SSL_set_connect_state(handshake->ssl_.get());
  if (!handshake->offerVersions())
    throw std::runtime_error("OpenSSL takes no ALPN: " + takeOpensslError());
  handshake->start(now);
  return handshake;
}

std::unique_ptr<DtlsHandshake> DtlsHandshake::accept(std::shared_ptr<DtlsShared> shared, Time now) {
  auto handshake = std::make_unique<DtlsHandshake>(std::move(shared));
  handshake->start(now);
  return handshake;
}

// Offers the versions, with a GREASE name before or after them, so that no responder comes to rely
// on one position in the list.
bool DtlsHandshake::offerVersions() {
  std::vector<uint8_t> list;
  auto offer = [&](std::string_view name) {
    list.push_back(static_cast<uint8_t>(name.size()));
    list.insert(list.end(), name.begin(), name.end());
  };
  if (shared_->asker) {
    offer(kJoinProtocol);
  } else {
    for (ProtocolVersion version : shared_->versions) offer(nameOf(version));
  }
  uint8_t random = 0;
  if (RAND_bytes(&random, 1) != 1) return false;
  const auto noise = static_cast<uint8_t>((random & 0xf0) | 0x0a);
  std::array<uint8_t, 3> grease{2, noise, noise};
  list.insert((random & 1) != 0 ? list.begin() : list.end(), grease.begin(), grease.end());
  return SSL_set_alpn_protos(ssl_.get(), list.data(), static_cast<unsigned>(list.size())) == 0;
}

void DtlsHandshake::start(Time now) {
  patience_ = HandshakePatience(now);
  advance(now);
}

// RFC 6347 section 4.2.4.1 asks for a first timeout that fits the path, where it is known. The
// flight under way keeps its timer.
void DtlsHandshake::onFirstAnswer(Duration least, Duration most, Time now) {
  patience_.onAnswer(most, now);
  retransmit_ = std::max<Duration>(retransmit_, least * 3 / 2);
  if (state_ == State::kRunning) updateDeadline(now);
}

void DtlsHandshake::onDatagram(ByteView bytes, Time now) {
  if (isJoinBody(bytes)) {
    if (join_ && state_ == State::kRunning) onJoinMessage(bytes, now);
  } else {
    onDtls(bytes, now);
  }
}

// Once its DTLS is done, a side answers only a peer that missed its last flight. This is an
// initiator that repeats its own last flight, which ends with an encrypted record under a new
// record number.
void DtlsHandshake::onDtls(ByteView bytes, Time now) {
  DtlsFilter::Parts parts = DtlsFilter::split(bytes);
  if (!lastFlight_.empty() && !parts.sealed.empty() && recordNumber(parts.sealed) > lastSealed_) {
    lastSealed_ = recordNumber(parts.sealed);
    for (const auto& datagram : lastFlight_) pipe_.output().push_back(datagram);
  }
  if (state_ != State::kRunning || !ssl_) return;
  heard_ = true;
  if (!parts.clear.empty()) feed(parts.clear, now);
  if (!parts.sealed.empty()) early_.assign(parts.sealed.begin(), parts.sealed.end());
  if (state_ != State::kRunning || !ssl_ || early_.empty() || !cipherChanged_) return;
  lastSealed_ = recordNumber(early_);
  feed(std::exchange(early_, {}), now);
}

void DtlsHandshake::feed(ByteView bytes, Time now) {
  pipe_.openInput(bytes);
  advance(now);
  pipe_.closeInput();
}

void DtlsHandshake::onTimer(Time now) {
  if (state_ != State::kRunning || now < deadline_) return;
  if (join_) {
    if (now < patience_.end()) return askAgain(now);
    if (expected_) return fail("the concentrator has not answered the request to join");
    state_ = State::kClosed;
    return;
  }
  if (now >= patience_.end()) {
    return fail(
        heard_ ? "the handshake was not finished in time: datagrams are lost or refused on the way"
               : "no answer: the peer is down, at another address, has another pin, or is of "
                 "another release; compare the pin with what 'braidctl pin FILE.crt' says there");
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
    finish(now);
  } else if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
    fail(explain());
  }
  updateDeadline(now);
}

void DtlsHandshake::finish(Time now) {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &protocol, &size);
  std::string_view selected(reinterpret_cast<const char*>(protocol), size);
  // An initiator accepts only what it offered.
  joining_ = selected == kJoinProtocol && (expected_ ? shared_->asker != nullptr : joining_);
  if (expected_ && shared_->asker && !joining_) return fail("the peer does not let anybody join");
  auto isSelected = [&](ProtocolVersion version) { return nameOf(version) == selected; };
  auto version = std::ranges::find_if(shared_->versions, isSelected);
  if (!joining_ && version == shared_->versions.end())
    return fail("the peer chose none of " + namesOf(shared_->versions));
  // Without the extended master secret, a man in the middle can make the exported keys of two
  // sessions equal (RFC 7627).
  if (SSL_get_extms_support(ssl_.get()) != 1) return fail(kNoMasterSecret);
  std::optional<AeadKind> aead = aeadOf(ssl_.get());
  if (aead && joining_) return beginJoin(*aead, now);
  if (!joining_) secrets_.version = *version;
  if (!aead || !exportSecrets(ssl_.get(), secrets_))
    return fail("no session keys: " + takeOpensslError());
  secrets_.aead = *aead;
  state_ = State::kDone;
  endDtls();
}

void DtlsHandshake::endDtls() {
  lastFlight_.assign(pipe_.output().begin(), pipe_.output().end());
  ssl_.reset();
}

// From here on, an initiator repeats its request until it is answered. A responder answers until
// the handshake's time is over.
void DtlsHandshake::beginJoin(AeadKind aead, Time now) {
  JoinSecrets secrets;
  secrets.aead = aead;
  if (!exportJoin(ssl_.get(), secrets)) return fail("no keys: " + takeOpensslError());
  join_.emplace(secrets, expected_ ? JoinChannel::Side::kInitiator : JoinChannel::Side::kResponder);
  endDtls();
  if (expected_) askAgain(now);
}

void DtlsHandshake::askAgain(Time now) {
  if (!join_->hasSpoken()) join_->seal(shared_->asker->request(join_->binding()));
  if (!join_->hasSpoken())
    return fail("the request to join cannot be sealed: " + takeOpensslError());
  pipe_.output().push_back(join_->sealed());
  askAt_ = now + askPause_;
  askPause_ = std::min(2 * askPause_, kLongestAsk);
  updateDeadline(now);
}

void DtlsHandshake::onJoinMessage(ByteView body, Time now) {
  if (!expected_ && ++requests_ > kMaxRequests) return;
  std::optional<JoinMessage> message = join_->open(body);
  if (!message) return;
  if (expected_) {
    state_ = State::kDone;
    return shared_->asker->onAnswer(*message);
  }
  if (!join_->hasSpoken()) {
    std::optional<JoinMessage> answer =
        shared_->handler
            ? shared_->handler->onRequest(secrets_.peer, join_->binding(), *message, now)
            : std::nullopt;
    if (!answer) return;
    join_->seal(*answer);
  }
  if (join_->hasSpoken()) pipe_.output().push_back(join_->sealed());
}

void DtlsHandshake::fail(std::string why) {
  state_ = State::kFailed;
  error_ = std::move(why);
  ERR_clear_error();
}

void DtlsHandshake::updateDeadline(Time now) {
  timeval left{};
  deadline_ = std::min(patience_.end(), askAt_);
  if (!ssl_ || DTLSv1_get_timeout(ssl_.get(), &left) != 1) return;
  Duration wait = std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec);
  // Otherwise OpenSSL would wait until the clock shows that time again.
  if (wait > 2 * longestRetransmit()) return fail("the clock was set back");
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
      if (shared_->asker)
        return std::string(kNoOpenInvitation) +
               ": this one was used or has expired, or another took its place; invite again";
      return "the peer speaks another version of the protocol than " + namesOf(shared_->versions);
    case SSL_AD_BAD_CERTIFICATE:
      return "the peer does not accept us: its configuration must hold our pin " +
             formatPin(shared_->ownPin);
    case SSL_AD_HANDSHAKE_FAILURE:
      return "the peer refuses: no cipher in common, or it got no certificate";
    default:
      return std::string("the peer refuses: ") + SSL_alert_desc_string_long(alert);
  }
}

}  // namespace braid
