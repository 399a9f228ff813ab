#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// A handshake that takes longer has failed. Ours: in that time the first flight is sent seven times.
inline constexpr Duration kHandshakeTimeout = 10s;

/// One handshake in progress, datagrams in and out, without their envelope (HandshakeSeal). Its owner drops it after
/// kHandshakeTimeout.
class Handshake {
 public:
  enum class State : uint8_t {
    kRunning,
    kDone,
    kFailed,
    kClosed  ///< a responder's that was for something else than a session, and is over
  };
  virtual ~Handshake() = default;
  virtual void onDatagram(ByteView bytes, Time now) = 0;
  /// Call at or after deadline(): retransmits the last flight.
  virtual void onTimer(Time now) = 0;
  /// Next datagram to send, of at most kMaxHandshakeBody bytes: fills `out` (a fresh packet with room) and gives
  /// true; false when there is none.
  virtual bool pollDatagram(Packet& out) = 0;
  /// Another one only after a call of onDatagram() or onTimer().
  virtual Time deadline() const = 0;
  virtual State state() const = 0;
  /// Valid once state() is kDone. A finished handshake still answers retransmitted flights of the other side.
  virtual const SessionSecrets& secrets() const = 0;
  /// They have been taken: erases them.
  virtual void forgetSecrets() = 0;
  /// Why it failed, for the log; empty otherwise.
  virtual std::string_view error() const = 0;
};

/// Makes handshakes. Behind it stands DTLS in the daemon and a deterministic stand-in in virtual time.
class HandshakeProvider {
 public:
  virtual ~HandshakeProvider() = default;
  /// This gateway's own pin.
  virtual const Pin& ownPin() const = 0;
  /// Starts as initiator towards the peer with this pin.
  virtual std::unique_ptr<Handshake> initiate(const Pin& peer, Time now) = 0;
  /// Starts as responder to whoever has shown that it receives at its address; its hello is to be fed.
  virtual std::unique_ptr<Handshake> accept(Time now) = 0;
  /// Replaces the pins that responders accept.
  virtual void setAcceptedPins(std::vector<Pin> pins) = 0;
};

/// True for the first datagram of a handshake: a ClientHello in a record of epoch 0 (RFC 6347
/// sections 4.1, 4.2.2).
constexpr bool isClientHello(ByteView b) {
  return b.size() > 13 && b[0] == 22 && b[3] == 0 && b[4] == 0 && b[13] == 1;
}

}  // namespace braid
