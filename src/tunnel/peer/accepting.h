#pragma once

// Handshakes that others begin. Here strangers reach the gateway, so that all work and memory is
// limited. A handshake datagram is handled as follows:
//
//     while nobody may begin                  dropped, whatever it is (setListening)
//     not sealed with our pin                 dropped: strangers get no answer
//     sealed, but seen before                 dropped: it is a replay
//     sealed, without a cookie for its        answered by a cookie request, which is shorter than
//     address                                 the datagram, if HandshakeLimiter permits it; no
//     state
//                                             is kept
//     sealed, with the cookie, the first      begins a handshake, if HandshakeLimiter and
//     datagram of a handshake                 kMaxRunning permit it
//     sealed, of a handshake that runs or     passed to that handshake
//     is done
//
// A handshake is kept while it runs and for a while after it, because a peer that has missed our
// last flight resends its own. When kMaxRunning handshakes run, a new one may evict one of a
// network, host or key that has several, or one that has taken longer than kGrace. A younger one is
// left alone: its initiator would not be told, while one that is refused retries in a moment.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/api/options.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/peer/handshake_limiter.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// The nonces of handshake datagrams that have arrived. A replayed datagram is not answered. The
/// class uses two Bloom filters in turn: one honest datagram in a few thousand is taken for a
/// replay, and its initiator resends it with a new nonce.
class SeenNonces {
 public:
  /// Nonces per filter before it is replaced.
  static constexpr size_t kGeneration = 8192;

  /// True when the nonce is in one of the filters: among the last kGeneration nonces at least.
  bool seen(const HandshakeNonce& nonce) const;
  void add(const HandshakeNonce& nonce);

 private:
  static constexpr size_t kBits = size_t{1} << 18;
  using Filter = std::bitset<kBits>;
  static std::array<size_t, 4> placesOf(const HandshakeNonce& nonce);

  Filter present_, before_;
  size_t added_ = 0;
};

/// The handshakes that others began. A stranger costs no state until its cookie has shown that it
/// receives at its address. After that it costs at most its share of kMaxRunning.
class HandshakeServer {
 public:
  /// Maximum number of handshakes that run at once. Chosen: one takes about 60 KB in OpenSSL.
  static constexpr size_t kMaxRunning = 128;
  /// Maximum number of running handshakes of a stranger's host, or of one key at its hosts; beyond
  /// it their oldest one is evicted. Chosen: an initiator has one for each of its routes.
  static constexpr size_t kMaxRunningOfOne = 32;
  /// A handshake that runs longer may be evicted. Chosen: it takes two or three round trips, and
  /// each is shorter than this.
  static constexpr Duration kGrace = 2s;
  /// Maximum number of datagrams that a handshake accepts. Chosen: an initiator that sends every
  /// flight seven times sends 40.
  static constexpr uint32_t kMaxDatagrams = 64;
  /// Maximum number of finished handshakes that are remembered; one takes about 2 KB.
  static constexpr size_t kMaxDone = 1024;
  /// Maximum number of replies that wait for the driver; a further one is lost, as it might be on
  /// its way.
  static constexpr size_t kMaxReplies = 256;

  /// All of the parameters must outlive this object.
  HandshakeServer(PacketPool& pool, HandshakeProvider& handshakes, SecretRandom& random);

  /// Whether others may begin handshakes; at first they may. When they may not any more, those that
  /// run are forgotten, and nothing is sent.
  void setListening(bool on);
  /// A handshake datagram, which is decrypted in place. Returns nullopt when it was used, else why
  /// not.
  std::optional<Drop> onDatagram(const Route& from, ByteSpan bytes, Time now);
  void onTimer(Time now) {
    if (next_ <= now) step(now);
  }

  bool pollDatagram(Datagram& out);
  /// Result of a handshake.
  struct Outcome {
    Route route;
    std::optional<SessionSecrets> secrets;  ///< nullopt: the handshake failed
    std::string error;                      ///< why it failed
  };
  bool pollOutcome(Outcome& out);

  /// When to call onTimer(); kNever: nothing is under way.
  Time nextDeadline() const { return next_; }
  /// A peer connected from this address before this gateway started: makes its host a known one.
  void welcome(const Address& address, const Pin& peer) { limiter_.welcome(address, peer); }
  /// The configured peers: forgets the known hosts of all others.
  void setPeers(const std::vector<Pin>& pins) { limiter_.keepKeys(pins); }
  /// Forgets all handshakes, and what it would send or report of them.
  void forgetAll();
  /// Handshakes that are remembered, finished ones included.
  size_t size() const { return handshakeServer_.size(); }

 private:
  struct Responder {
    HandshakeId id;
    HandshakeOrigin origin;
    std::unique_ptr<Handshake> handshake;
    Time began;
    HandshakePatience patience;  ///< its end: when the handshake is forgotten, done or not
    uint32_t datagrams = 0;
    bool done = false;

    Responder(const HandshakeId& of, const HandshakeOrigin& from, std::unique_ptr<Handshake> made,
              Time now)
        : id(of), origin(from), handshake(std::move(made)), began(now), patience(now) {}
    Time end() const { return patience.end(); }
  };
  using Table = std::map<Route, Responder>;

  std::optional<Drop> ask(const Route& from, const HandshakeHeader& header, Time now);
  std::optional<Drop> begin(const Route& from, const HandshakeHeader& header, ByteView hello,
                            Time now);
  bool makeRoomFor(const HandshakeOrigin& origin, Time now);
  void displace(Table::iterator at);
  Table::iterator refuse(Table::iterator at, const char* why);
  void dropOldestDone();
  Table::iterator forget(Table::iterator at);
  std::optional<Drop> feed(Table::iterator at, ByteView body, Time now);
  Table::iterator settle(Table::iterator at, Time now);
  void drain(const Route& route, Responder& responder);
  void send(HandshakeKind kind, const HandshakeId& id, const Route& to, Packet body);
  void step(Time now);

  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  SecretRandom& random_;
  HandshakeEnvelope seal_;
  Cookies cookies_;
  SeenNonces seen_;
  HandshakeLimiter limiter_;
  bool listens_ = true;
  Table handshakeServer_;
  size_t done_ = 0;               ///< finished ones in responders_
  Time next_ = kNever;            ///< no deadline in responders_ is earlier
  std::deque<Datagram> replies_;  ///< sealed, in the order of sending
  std::deque<Outcome> outcomes_;
};

}  // namespace braid
