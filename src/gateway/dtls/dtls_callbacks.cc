#include <algorithm>
#include <functional>
#include <utility>

#include "base/printable.h"
#include "gateway/dtls/dtls_handshake.h"

// What OpenSSL asks during a handshake: which hello, protocol and certificate are accepted, and
// when a flight is repeated.

namespace braid {

namespace {

// The beginning of a name that an unknown peer gives, for a log line.
std::string shown(ByteView name) {
  constexpr size_t kLongest = 40;
  return printable({reinterpret_cast<const char*>(name.data()), std::min(name.size(), kLongest)});
}

// Whether a name is a GREASE name: one that will never get a meaning (RFC 8701 section 2).
bool isGreaseName(ByteView name) {
  return name.size() == 2 && name[0] == name[1] && (name[0] & 0x0f) == 0x0a;
}

// Whether a ServerHello has this extension. `hello` is as SSL_CTX_set_msg_callback() shows it: with
// the header of RFC 6347 section 4.2.2.
bool hasExtension(ByteView hello, uint16_t wanted) {
  constexpr size_t kBeforeSessionId = 12 + 2 + 32;
  Reader in(hello);
  in.take(kBeforeSessionId);
  in.take(in.u8());
  in.take(2 + 1);  // cipher suite, compression
  Reader extensions(in.take(in.u16()));
  while (extensions.remaining() > 0) {
    uint16_t type = extensions.u16();
    extensions.take(extensions.u16());
    if (type == wanted && extensions.ok()) return true;
  }
  return false;
}

}  // namespace

std::string DtlsHandshake::nameOf(ProtocolVersion version) {
  return "braid/" + std::to_string(version);
}
std::string DtlsHandshake::namesOf(const std::vector<ProtocolVersion>& versions) {
  std::string text;
  for (ProtocolVersion version : versions) text += (text.empty() ? "" : ", ") + nameOf(version);
  return text;
}

void DtlsHandshake::prepare(SSL_CTX* context) {
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(
      context,
      [](X509_STORE_CTX* chain, void*) {
        return callbackOfC(0, [&] { return onCertificate(chain); });
      },
      nullptr);
  SSL_CTX_set_client_hello_cb(
      context,
      [](SSL* ssl, int* alert, void*) {
        *alert = SSL_AD_INTERNAL_ERROR;
        return callbackOfC(SSL_CLIENT_HELLO_ERROR, [&] { return onClientHello(ssl, alert); });
      },
      nullptr);
  SSL_CTX_set_alpn_select_cb(
      context,
      [](SSL* ssl, const unsigned char** out, unsigned char* outSize, const unsigned char* in,
         unsigned inSize, void*) {
        return callbackOfC(SSL_TLSEXT_ERR_ALERT_FATAL, [&] {
          return of(ssl).onAlpn(out, outSize, {in, inSize});
        });
      },
      nullptr);
  SSL_CTX_set_msg_callback(context, [](int isOut, int, int type, const void* bytes, size_t size,
                                       SSL* ssl, void*) noexcept {
    ByteView message(static_cast<const uint8_t*>(bytes), size);
    if (isOut == 0) of(ssl).onMessage(type, message);
  });
}

DtlsHandshake& DtlsHandshake::of(const SSL* ssl) {
  return *static_cast<DtlsHandshake*>(SSL_get_app_data(ssl));
}

// Replaces all of OpenSSL's checks of the certificate. The handshake itself proves that the peer
// has the certificate's key.
int DtlsHandshake::onCertificate(X509_STORE_CTX* chain) {
  auto ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (!of(ssl).hasMasterSecret_) {
    of(ssl).refusal_ = kNoMasterSecret;
    X509_STORE_CTX_set_error(
        chain,
        X509_V_ERR_APPLICATION_VERIFICATION);  // sent as the alert handshake_failure
    return 0;
  }
  X509* certificate = X509_STORE_CTX_get0_cert(chain);
  if (certificate && of(ssl).checkPeer(pinOf(certificate))) return 1;
  X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REJECTED);  // sent as the alert bad_certificate
  return 0;
}

bool DtlsHandshake::checkPeer(const Pin& seen) {
  secrets_.peer = seen;
  if (!expected_ && joining_) return true;  // the join handler decides about its identity
  if (expected_ ? seen == *expected_ : shared_->accepts(seen)) return true;
  refusal_ = expected_ ? "the peer has the pin " + formatPin(seen) + ", expected is " +
                             formatPin(*expected_)
                       : "a stranger with the pin " + formatPin(seen) +
                             "; to let him in, add a peer with this pin";
  return false;
}

// Refuses a ClientHello without ALPN or without the extended master secret; OpenSSL would accept
// it.
int DtlsHandshake::onClientHello(SSL* ssl, int* alert) {
  auto has = [&](unsigned type) {
    const unsigned char* extension = nullptr;
    size_t size = 0;
    return SSL_client_hello_get0_ext(ssl, type, &extension, &size) == 1;
  };
  auto refuse = [&](int why, std::string text) {
    of(ssl).refusal_ = std::move(text);
    *alert = why;
    return SSL_CLIENT_HELLO_ERROR;
  };
  if (!has(TLSEXT_TYPE_application_layer_protocol_negotiation))
    return refuse(SSL_AD_NO_APPLICATION_PROTOCOL,
                  "the peer names no protocol, we speak " + namesOf(of(ssl).shared_->versions));
  if (!has(TLSEXT_TYPE_extended_master_secret))
    return refuse(SSL_AD_HANDSHAKE_FAILURE, kNoMasterSecret);
  return SSL_CLIENT_HELLO_SUCCESS;
}

// Notes when OpenSSL begins to read encrypted records instead of buffering them: at the other
// side's ChangeCipherSpec. The handshake state would tell this, too, but its numbers differ in the
// next OpenSSL release, with which the same program may run.
//
// OpenSSL reports whether the responder uses the extended master secret only when both sides are
// done, which is too late for an alert. So it is noted here, and onCertificate() refuses.
void DtlsHandshake::onMessage(int type, ByteView message) noexcept {
  if (type == SSL3_RT_CHANGE_CIPHER_SPEC) cipherChanged_ = true;
  if (!expected_ || type != SSL3_RT_HANDSHAKE || message.empty() ||
      message[0] != SSL3_MT_SERVER_HELLO)
    return;
  hasMasterSecret_ = hasExtension(message, TLSEXT_TYPE_extended_master_secret);
}

int DtlsHandshake::onAlpn(const unsigned char** out, unsigned char* outSize, ByteView names) {
  const std::vector<ProtocolVersion>& own = shared_->versions;
  auto best = own.end();  // the highest version in common
  std::string offered;
  bool mayJoin = shared_->handler && shared_->handler->isOpen();
  Reader reader(names);
  while (reader.remaining() > 0) {
    ByteView name = reader.take(reader.u8());
    auto isMeant = [&](ProtocolVersion v) {
      return std::ranges::equal(nameOf(v), name, std::equal_to<int>());
    };
    auto version = std::find_if(own.begin(), best, isMeant);
    if (version != best) {
      best = version;
      *out = name.data();
      *outSize = static_cast<unsigned char>(name.size());
    }
    if (mayJoin && best == own.end() &&
        std::ranges::equal(kJoinProtocol, name, std::equal_to<int>())) {
      joining_ = true;
      *out = name.data();
      *outSize = static_cast<unsigned char>(name.size());
    }
    if (offered.size() < 80 && !isGreaseName(name)) offered += " " + shown(name);
  }
  if (best != own.end()) joining_ = false;
  if (best != own.end() || joining_) return SSL_TLSEXT_ERR_OK;
  refusal_ =
      "no protocol version in common: the peer speaks" + offered + ", we speak " + namesOf(own);
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

unsigned DtlsHandshake::onRetransmitTime(SSL* ssl, unsigned microseconds) {
  auto count = [](Duration d) {
    return static_cast<unsigned>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
  };
  if (microseconds == 0) return count(of(ssl).retransmit_);
  return std::min(2 * microseconds, count(of(ssl).longestRetransmit()));
}

}  // namespace braid
