#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "gateway/dtls/identity.h"
#include "tunnel/peer/handshake.h"

namespace braid {

/// Decides which parts of a handshake's datagram OpenSSL may see. OpenSSL buffers what comes too
/// early: up to 100 encrypted records of up to 16 KB each, and the announced length (up to 16 KB)
/// of messages that may never be completed. So encrypted records are held back until OpenSSL can
/// read them, and long messages are not let in.
struct DtlsFilter {
  /// The longest handshake message. A certificate has about 500 bytes.
  static constexpr size_t kMaxMessage = 2048;
  /// Most bytes of encrypted records in a datagram: one Finished message and an alert.
  static constexpr size_t kMaxSealed = 256;

  /// A datagram's plaintext records (epoch 0), and the encrypted ones after them.
  struct Parts {
    ByteView clear, sealed;
  };
  /// The parts that may pass. The datagram is cut before the first record that may not.
  static Parts split(ByteView datagram);
};

struct DtlsShared;
class JoinAsker;
class JoinHandler;

struct DtlsOptions {
  std::optional<AeadKind> cipher;  ///< the only cipher to offer and take; nullopt: by hardware
  std::optional<bool> hasAes;   ///< whether AES is fast on this machine; nullopt: ask the processor
  Duration retransmit = 400ms;  ///< first retransmission of a flight; doubles up to 2 s
  /// Versions of the protocol to offer and accept, by ALPN (RFC 7301). The highest that both sides
  /// speak is chosen. At least one.
  std::vector<ProtocolVersion> versions{kProtocolVersions.begin(), kProtocolVersions.end()};
};

/// Has OpenSSL take fresh randomness from the kernel, and `with`: what it draws from now on does
/// not follow from its state before. Throws std::runtime_error when the kernel gives none.
void renewOpensslRandomness(const RandomKey& with);

/// True when the processor has AES instructions; without them ChaCha20 is the faster cipher.
bool processorHasAes();

/// Handshakes by OpenSSL's DTLS 1.2: ECDHE with ECDSA certificates on both sides. Each side knows
/// the other by its pin. There is no certificate authority and no expiry, on purpose: the pin is
/// the identity, and the certificate only carries it. Traffic keys come from the exporter (RFC
/// 5705) with the protocol version in its label; DTLS carries no data of the tunnel.
///
/// Retransmission uses OpenSSL's own (wall) clock; deadline() translates it. As in every DTLS, an
/// attacker that can forge a datagram of a running handshake can break the handshake. The envelope
/// around the datagrams (HandshakeEnvelope) limits this to attackers that know the pin. The
/// constructor throws std::runtime_error when OpenSSL lacks something. Use from one thread.
class DtlsProvider : public HandshakeProvider {
 public:
  explicit DtlsProvider(const Identity& identity, const DtlsOptions& options = {});
  ~DtlsProvider() override;

  const Pin& ownPin() const override;
  std::unique_ptr<Handshake> initiate(const Pin& peer, Time now) override;
  std::unique_ptr<Handshake> accept(Time now) override;
  void setAcceptedPins(std::vector<Pin> pins) override;
  /// From now on, responders pass the requests of gateways that want to join to `handler`, which
  /// must outlive them. nullptr: no gateway can join.
  void setJoinHandler(JoinHandler* handler);
  /// From now on, initiators join instead of starting a session. Their handshake is done when
  /// `asker`, which must outlive it, has the answer.
  void setJoinAsker(JoinAsker* asker);

 private:
  std::shared_ptr<DtlsShared> shared_;
};

}  // namespace braid
