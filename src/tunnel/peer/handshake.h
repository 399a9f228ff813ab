#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// A handshake whose peer has not answered for this time has failed. Chosen: in that time the first
/// flight is sent seven times.
inline constexpr Duration kHandshakeTimeout = 10s;

/// How long a handshake may take: kHandshakeTimeout, or longer if the first answer shows that the
/// path is slow (a satellite, a radio link behind a queue of some seconds). The answer to an
/// earlier transmission of a flight counts, so the time until it came is an upper bound of the
/// round trip.
class HandshakePatience {
 public:
  /// Round trips that may follow the first answer. A handshake needs two; the others are for
  /// losses.
  static constexpr int kRoundTrips = 8;
  /// Longest handshake, whatever the round trip.
  static constexpr Duration kLongest = 60s;

  explicit HandshakePatience(Time begin) : begin_(begin), end_(begin + kHandshakeTimeout) {}
  /// The first answer has come, `took` after the first transmission of what it answers.
  void onAnswer(Duration took, Time now) {
    end_ = std::min(begin_ + kLongest, std::max(end_, now + kRoundTrips * took));
  }
  Time end() const { return end_; }

 private:
  Time begin_, end_;
};

/// One handshake in progress: datagrams in and out, without their envelope (HandshakeEnvelope).
class Handshake {
 public:
  enum class State : uint8_t {
    kRunning,
    kDone,
    kFailed,
    kClosed  ///< responder: the handshake served another purpose than a session, and has ended
  };
  virtual ~Handshake() = default;
  virtual void onDatagram(ByteView bytes, Time now) = 0;
  /// Initiator: the peer has answered for the first time, perhaps only with a cookie request. The
  /// round trip takes from `least` (since the last transmission) to `most` (since the first one).
  virtual void onFirstAnswer(Duration least, Duration most, Time now) = 0;
  /// Retransmits the last flight. Call it at deadline() or later.
  virtual void onTimer(Time now) = 0;
  /// Gives the next datagram to send, of at most kMaxHandshakeBody bytes, in `out` (an empty packet
  /// with room for it). False when there is none.
  virtual bool pollDatagram(Packet& out) = 0;
  /// When to call onTimer(). It changes only in onDatagram() and onTimer().
  virtual Time deadline() const = 0;
  virtual State state() const = 0;
  /// Valid once state() is kDone. A finished handshake still answers retransmitted flights of the
  /// other side.
  virtual const SessionSecrets& secrets() const = 0;
  /// Erases the secrets, after the owner has taken them.
  virtual void forgetSecrets() = 0;
  /// Why the handshake failed, as text for the log; empty otherwise.
  virtual std::string_view error() const = 0;
};

/// Makes handshakes: DTLS in the daemon, a deterministic stand-in in virtual time.
class HandshakeProvider {
 public:
  virtual ~HandshakeProvider() = default;
  /// This gateway's own pin.
  virtual const Pin& ownPin() const = 0;
  /// Starts a handshake as initiator with the peer that has this pin.
  virtual std::unique_ptr<Handshake> initiate(const Pin& peer, Time now) = 0;
  /// Starts a handshake as responder. The initiator has shown that it receives at its address. Its
  /// hello must be passed to onDatagram() next.
  virtual std::unique_ptr<Handshake> accept(Time now) = 0;
  /// Replaces the pins that a responder accepts.
  virtual void setAcceptedPins(std::vector<Pin> pins) = 0;
};

/// True for the first datagram of a handshake: a ClientHello in a record of epoch 0 (RFC 6347
/// sections 4.1, 4.2.2).
constexpr bool isClientHello(ByteView b) {
  return b.size() > 13 && b[0] == 22 && b[3] == 0 && b[4] == 0 && b[13] == 1;
}

}  // namespace braid
