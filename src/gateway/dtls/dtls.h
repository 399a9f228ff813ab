#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/dtls/identity.h"
#include "tunnel/handshake.h"

namespace braid {

struct DtlsShared;

/// The version negotiation: gateways agree by ALPN (RFC 7301) on the protocol of docs/protocol.md.
inline constexpr const char* kDtlsProtocol = "braid/2";

struct DtlsOptions {
  std::optional<AeadKind> cipher;        ///< the only cipher to offer and take; nullopt: by hardware
  std::optional<bool> hasAes;            ///< whether AES is fast here; nullopt: ask the processor
  Duration retransmit = 400ms;           ///< first retransmission of a flight; doubles up to 2 s
  std::string protocol = kDtlsProtocol;  ///< 1 to 255 bytes
};

/// True when the processor has AES instructions; without them ChaCha20 is the faster cipher.
bool processorHasAes();

/// Handshakes by OpenSSL's DTLS 1.2: ECDHE with ECDSA certificates on both sides, each known by its pin.
/// There is no authority and no expiry on purpose: the pin is the identity, a certificate is only its
/// wrapping. Traffic keys come from the exporter (RFC 5705) with the label "EXPORTER-braid-2"; DTLS carries
/// no data of the tunnel.
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

 private:
  std::shared_ptr<DtlsShared> shared_;
};

}  // namespace braid
