#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "gateway/dtls/identity.h"
#include "tunnel/handshake.h"

namespace braid {

struct DtlsShared;
class JoinAsker;
class JoinDesk;

struct DtlsOptions {
  std::optional<AeadKind> cipher;  ///< the only cipher to offer and take; nullopt: by hardware
  std::optional<bool> hasAes;      ///< whether AES is fast here; nullopt: ask the processor
  Duration retransmit = 400ms;     ///< first retransmission of a flight; doubles up to 2 s
  /// Versions of the protocol to offer and take, by ALPN (RFC 7301); the highest that both sides speak is taken. At
  /// least one.
  std::vector<ProtocolVersion> versions{kProtocolVersions.begin(), kProtocolVersions.end()};
};

/// True when the processor has AES instructions; without them ChaCha20 is the faster cipher.
bool processorHasAes();

/// Handshakes by OpenSSL's DTLS 1.2: ECDHE with ECDSA certificates on both sides, each known by its pin.
/// There is no authority and no expiry on purpose: the pin is the identity, a certificate is only its
/// wrapping. Traffic keys come from the exporter (RFC 5705), with the version in its label; DTLS carries no data of
/// the tunnel.
///
/// Retransmission runs on OpenSSL's own (wall) clock; deadline() translates. As in every DTLS, who can forge a
/// datagram of a handshake under way may break it: their envelope (HandshakeSeal) leaves that to who knows the pin.
/// Throws std::runtime_error from the constructor when OpenSSL lacks something. One thread.
class DtlsProvider : public HandshakeProvider {
 public:
  explicit DtlsProvider(const Identity& identity, const DtlsOptions& options = {});
  ~DtlsProvider() override;

  const Pin& ownPin() const override;
  std::unique_ptr<Handshake> initiate(const Pin& peer, Time now) override;
  std::unique_ptr<Handshake> accept(Time now) override;
  void setAcceptedPins(std::vector<Pin> pins) override;
  /// Responders let whoever wants to join ask this one from now on, which must outlive them. nullptr: nobody joins.
  void setJoinDesk(JoinDesk* desk);
  /// Initiators join instead of beginning a session from now on; theirs is done when the asker, which must outlive it,
  /// has the answer.
  void setJoinAsker(JoinAsker* asker);

 private:
  std::shared_ptr<DtlsShared> shared_;
};

}  // namespace braid
