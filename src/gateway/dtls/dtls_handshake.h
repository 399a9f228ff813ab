#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/dtls/datagram_bio.h"
#include "gateway/dtls/dtls_cookie.h"
#include "gateway/dtls/openssl_handle.h"
#include "tunnel/handshake.h"

namespace braid {

/// What the handshakes of one provider share.
struct DtlsShared {
  SslContextHandle context;
  DtlsCookies cookies;
  std::vector<Pin> acceptedPins;  // sorted
  Pin ownPin{};
  std::string protocol;
  Duration retransmit{};

  bool accepts(const Pin& pin) const;
};

/// One DTLS handshake, or the listener that becomes one (responder) when a cookie comes back.
class DtlsHandshake : public Handshake {
 public:
  /// UDP payload of the largest handshake datagram: fits every IPv6 path (RFC 8200 section 5) with room for
  /// tunnels.
  static constexpr size_t kMtu = 1200;
  /// Flights are retransmitted at least so often.
  static constexpr Duration kMaxRetransmit = 2s;

  /// Sets the callbacks that handshakes need on their context.
  static void prepare(SSL_CTX* context);

  /// A listener.
  explicit DtlsHandshake(std::shared_ptr<DtlsShared> shared);
  ~DtlsHandshake() override;
  /// An initiator; its first flight is ready.
  static std::unique_ptr<DtlsHandshake> initiate(std::shared_ptr<DtlsShared> shared, const Pin& peer,
                                                 Time now);

  /// Listener only. True when the hello carried our cookie for this address: this is a responder's handshake
  /// from now on. Otherwise nothing is kept; a cookie request may be ready.
  bool listen(const Endpoint& from, ByteView hello, Time now);

  void onDatagram(ByteView bytes, Time now) override;
  void onTimer(Time now) override;
  bool pollDatagram(Packet& out) override;
  Time deadline() const override { return state_ == State::kRunning ? deadline_ : kNever; }
  State state() const override { return state_; }
  const SessionSecrets& secrets() const override { return secrets_; }
  std::string_view error() const override { return error_; }

 private:
  static DtlsHandshake& of(const SSL* ssl);
  static int onCertificate(X509_STORE_CTX* chain, void*);
  static int onClientHello(SSL* ssl, int* alert, void*);
  static int onAlpn(SSL* ssl, const unsigned char** out, unsigned char* outSize, const unsigned char* in,
                    unsigned inSize, void*);
  static int onMakeCookie(SSL* ssl, unsigned char* cookie, unsigned* size);
  static int onCheckCookie(SSL* ssl, const unsigned char* cookie, unsigned size);
  static unsigned onRetransmitTime(SSL* ssl, unsigned microseconds);

  bool checkPeer(const Pin& seen);
  void start(Time now);
  void advance(Time now);
  void finish();
  void fail(std::string why);
  std::string explain();
  void updateDeadline(Time now);
  void discardData();

  std::shared_ptr<DtlsShared> shared_;
  DatagramPipe pipe_;
  SslHandle ssl_;
  std::optional<Pin> expected_;  // initiator: who must answer
  Endpoint from_;                // responder: whom the cookie is for
  State state_ = State::kRunning;
  SessionSecrets secrets_;
  std::string error_;
  std::string refusal_;  // why a callback of ours refused
  Time giveUpAt_ = kNever;
  Time deadline_ = kNever;
  bool heard_ = false;
};

}  // namespace braid
