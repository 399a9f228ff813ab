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
class DtlsHandshake;

/// The version negotiation: gateways agree by ALPN (RFC 7301) on the protocol of docs/protocol.md.
inline constexpr const char* kDtlsProtocol = "braid/1";

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
/// wrapping. Traffic keys come from the exporter (RFC 5705) with the label "EXPORTER-braid-1"; DTLS carries
/// no data of the tunnel.
///
/// Retransmission runs on OpenSSL's own (real) clock; deadline() translates. As in every DTLS, who can guess the
/// addresses of a handshake under way may break it by a forged datagram: then the handshake's owner tries again.
/// Throws std::runtime_error from the constructor when OpenSSL lacks something. One thread.
class DtlsProvider : public HandshakeProvider {
 public:
  explicit DtlsProvider(const Identity& identity, const DtlsOptions& options = {});
  ~DtlsProvider() override;

  std::unique_ptr<Handshake> initiate(const Pin& peer, Time now) override;
  HelloAnswer onHello(const Endpoint& from, ByteView bytes, Packet& out, Time now) override;
  void setAcceptedPins(std::vector<Pin> pins) override;

 private:
  std::shared_ptr<DtlsShared> shared_;
  std::unique_ptr<DtlsHandshake> listener_;  // takes every stranger's hello; holds nothing between them
};

}  // namespace braid
