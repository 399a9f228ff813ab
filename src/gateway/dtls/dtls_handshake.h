#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/dtls/datagram_bio.h"
#include "gateway/dtls/identity.h"
#include "gateway/dtls/join.h"
#include "tunnel/peer/handshake.h"

namespace braid {

/// State that all handshakes of one provider share.
struct DtlsShared {
  SslContextHandle context;
  std::vector<Pin> acceptedPins;  // sorted
  Pin ownPin{};
  std::vector<ProtocolVersion> versions;  // the highest first
  Duration retransmit{};
  JoinHandler* handler = nullptr;  // for responders; nullptr: no gateway can join here
  JoinAsker* asker = nullptr;      // for initiators; nullptr: they start sessions

  bool accepts(const Pin& pin) const;
};

/// One DTLS handshake. The OpenSSL object is freed when the handshake is done. If the last flight
/// must be repeated later, the datagrams are sent again as they were.
class DtlsHandshake : public Handshake {
 public:
  /// Longest time between two retransmissions of a flight, unless the peer's first answer took
  /// longer.
  static constexpr Duration kMaxRetransmit = 2s;
  /// An initiator that joins repeats its request after kFirstAsk, then after twice that, and so on
  /// up to kLongestAsk. The responder usually decides in a moment, but not always before the first
  /// repetition.
  static constexpr Duration kFirstAsk = 100ms, kLongestAsk = 1s;
  /// Most requests that are processed in one handshake. An honest initiator sends half as many.
  static constexpr unsigned kMaxRequests = 24;

  /// Sets the callbacks that handshakes need on their OpenSSL context.
  static void prepare(SSL_CTX* context);

  explicit DtlsHandshake(std::shared_ptr<DtlsShared> shared);
  /// An initiator; its first flight is ready to send.
  static std::unique_ptr<DtlsHandshake> initiate(std::shared_ptr<DtlsShared> shared,
                                                 const Pin& peer, Time now);
  /// A responder, which waits for a ClientHello.
  static std::unique_ptr<DtlsHandshake> accept(std::shared_ptr<DtlsShared> shared, Time now);

  void onDatagram(ByteView bytes, Time now) override;
  void onFirstAnswer(Duration least, Duration most, Time now) override;
  void onTimer(Time now) override;
  bool pollDatagram(Packet& out) override;
  Time deadline() const override { return state_ == State::kRunning ? deadline_ : kNever; }
  State state() const override { return state_; }
  const SessionSecrets& secrets() const override { return secrets_; }
  void forgetSecrets() override { secrets_.erase(); }
  std::string_view error() const override { return error_; }

 private:
  static constexpr const char* kNoMasterSecret = "the peer lacks the extended master secret";
  /// The ALPN name of a version.
  static std::string nameOf(ProtocolVersion version);
  static std::string namesOf(const std::vector<ProtocolVersion>& versions);
  static DtlsHandshake& of(const SSL* ssl);
  // Callbacks of OpenSSL; prepare() keeps their exceptions from it.
  static int onCertificate(X509_STORE_CTX* chain);
  static int onClientHello(SSL* ssl, int* alert);
  int onAlpn(const unsigned char** out, unsigned char* outSize, ByteView names);
  void onMessage(int type, ByteView message) noexcept;  ///< a message that came in
  static unsigned onRetransmitTime(SSL* ssl, unsigned microseconds);

  bool offerVersions();
  bool checkPeer(const Pin& seen);
  void start(Time now);
  void onDtls(ByteView bytes, Time now);
  void feed(ByteView bytes, Time now);
  void advance(Time now);
  void finish(Time now);
  void endDtls();
  void beginJoin(AeadKind aead, Time now);
  void askAgain(Time now);
  void onJoinMessage(ByteView body, Time now);
  void fail(std::string why);
  std::string explain();
  void updateDeadline(Time now);
  Duration longestRetransmit() const { return std::max<Duration>(kMaxRetransmit, 2 * retransmit_); }

  std::shared_ptr<DtlsShared> shared_;
  DatagramPipe pipe_;
  SslHandle ssl_;               // until the handshake is done
  std::vector<uint8_t> early_;  // encrypted records that arrived too early, see DtlsFilter
  std::vector<std::vector<uint8_t>> lastFlight_;  // of a finished handshake, to repeat it
  uint64_t lastSealed_ = 0;      // record number of the last encrypted record that was processed
  std::optional<Pin> expected_;  // initiator: pin that the responder must have
  State state_ = State::kRunning;
  SessionSecrets secrets_;
  std::string error_;
  std::string refusal_;  // why one of our callbacks refused
  HandshakePatience patience_{Time{}};
  Duration retransmit_;  ///< time to the first retransmission of a flight
  Time deadline_ = kNever;
  bool heard_ = false;
  bool hasMasterSecret_ = true;      ///< false: the responder's hello lacks that extension
  bool cipherChanged_ = false;       // the other side's ChangeCipherSpec was read
  bool joining_ = false;             // the responder chose kJoinProtocol
  std::optional<JoinChannel> join_;  // from the end of DTLS on
  unsigned requests_ = 0;            // number of join requests received
  Time askAt_ = kNever;              // initiator: when to ask again
  Duration askPause_ = kFirstAsk;
};

}  // namespace braid
