#pragma once

// A deterministic stand-in for DTLS in virtual time. Its datagrams look like DTLS 1.2 records and its flights
// follow RFC 6347 section 4.2: a cookie round, then two round trips.
//
//     initiator                             responder
//     HELLO, no cookie        ------->
//                             <-------      COOKIE            (no state kept)
//     HELLO, cookie           ------->
//                             <-------      SERVER            responder's nonce and pin
//     FINISHED                ------->                        responder is done
//                             <-------      FINISHED          initiator is done
//
// Every datagram ends in a keyed checksum, so that a flipped bit is noticed as DTLS would.

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "tunnel/handshake.h"

namespace braid::sim {

/// The pin of the gateway with this number.
Pin pinOf(unsigned number);

class FakeHandshakeProvider final : public HandshakeProvider {
 public:
  /// First retransmission after so long, doubled each time.
  static constexpr Duration kRetransmit = 250ms;

  /// `own` is this gateway's pin. Nonces and cookies come from `seed`.
  FakeHandshakeProvider(const Pin& own, uint64_t seed);

  std::unique_ptr<Handshake> initiate(const Pin& peer, Time now) override;
  HelloAnswer onHello(const Endpoint& from, ByteView bytes, Packet& out, Time now) override;
  void setAcceptedPins(std::vector<Pin> pins) override { accepted_ = std::move(pins); }

  /// Stateless answers given so far, and handshakes begun as responder.
  uint64_t cookiesSent() const { return cookiesSent_; }
  uint64_t acceptedHellos() const { return acceptedHellos_; }

 private:
  uint64_t cookieFor(const Endpoint& from, uint64_t nonce) const;

  Pin own_;
  Random random_;
  uint64_t cookieSecret_;
  std::vector<Pin> accepted_;
  uint64_t cookiesSent_ = 0;
  uint64_t acceptedHellos_ = 0;
};

}  // namespace braid::sim
