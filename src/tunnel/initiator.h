#pragma once

#include <memory>
#include <vector>

#include "tunnel/handshake.h"
#include "tunnel/wire/handshake_seal.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// The initiator's side of one handshake in its envelope: seals what leaves, opens what arrives, and comes again
/// with the cookie that the responder asks for.
class Initiator {
 public:
  /// `random` must outlive it.
  Initiator(HandshakeProvider& provider, SecretRandom& random, const Pin& peer, Time now);

  /// False when the datagram is not of this handshake, or not of who knows the responder's pin.
  bool onDatagram(ByteView bytes, Time now);
  void onTimer(Time now) { handshake_->onTimer(now); }
  /// As Handshake::pollDatagram(), ready to be sent.
  bool pollDatagram(Packet& out);
  const Handshake& handshake() const { return *handshake_; }

 private:
  void onCookie(ByteView cookie);

  SecretRandom& random_;
  HandshakeSeal seal_;
  std::unique_ptr<Handshake> handshake_;
  HandshakeId id_;
  HandshakeCookie cookie_{};
  std::vector<uint8_t> hello_;  ///< the last one that was sent, for the cookie
  bool again_ = false;          ///< hello_ is to be sent with the cookie
};

}  // namespace braid
