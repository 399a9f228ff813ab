#pragma once

// A deterministic stand-in for DTLS in virtual time. Its datagrams look like DTLS 1.2 records; its
// flights and retransmissions follow RFC 6347 section 4.2.
//
//     initiator                             responder
//     HELLO                   ------->
//                             <-------      SERVER            responder's nonce and pin
//     FINISHED                ------->                        responder is done
//                             <-------      FINISHED          initiator is done
//
// Every datagram ends in a keyed checksum, so a flipped bit is detected, as in DTLS.

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "tunnel/peer/handshake.h"

namespace braid::sim {

/// The pin of the gateway with this number.
Pin pinOf(unsigned number);

class FakeHandshakeProvider final : public HandshakeProvider {
 public:
  /// Time to the first retransmission of a flight, unless the peer's first answer took longer;
  /// doubled with each further one.
  static constexpr Duration kRetransmit = 250ms;

  /// `own` is this gateway's pin. All randomness comes from `seed`.
  FakeHandshakeProvider(const Pin& own, uint64_t seed);

  const Pin& ownPin() const override { return own_; }
  std::unique_ptr<Handshake> initiate(const Pin& peer, Time now) override;
  std::unique_ptr<Handshake> accept(Time now) override;
  void setAcceptedPins(std::vector<Pin> pins) override { accepted_ = std::move(pins); }
  /// The protocol versions that this gateway supports: 1 to 8 of them; by default those of this
  /// build. A session uses the highest version that both sides support.
  void setVersions(std::vector<ProtocolVersion> versions) { versions_ = std::move(versions); }
  const std::vector<ProtocolVersion>& versions() const { return versions_; }
  /// True when a peer with this pin is accepted.
  bool accepts(const Pin& pin) const;

  /// Number of handshakes begun as responder.
  uint64_t accepted() const { return acceptedCount_; }

 private:
  Pin own_;
  Random random_;
  std::vector<Pin> accepted_;
  std::vector<ProtocolVersion> versions_{kProtocolVersions.begin(), kProtocolVersions.end()};
  uint64_t acceptedCount_ = 0;
};

}  // namespace braid::sim
