#pragma once

// Handshakes that others begin: the door to the appliance.
//
//     a datagram that is not sealed with our pin               dropped: there is no answer for strangers
//     sealed, and seen before                                  dropped: somebody has overheard it
//     sealed, without our cookie for its address               a cookie request, shorter than it; no state
//     sealed, with the cookie, the first of a handshake        begins one, if Door and the places allow it
//     sealed, of a handshake that runs or is done              goes to it
//
// A handshake is kept while it runs and for a while after, because a peer that has missed our last flight sends its
// own again. When all places are taken by handshakes that run, a host that holds several loses one, or one that has
// taken long. A handshake that is on its way is left alone: its initiator would be told nothing, while one that is
// refused comes again in a moment.

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/door.h"
#include "tunnel/handshake.h"
#include "tunnel/io.h"
#include "tunnel/wire/cookies.h"
#include "tunnel/wire/handshake_seal.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// Handshakes that others began. A stranger costs no state until his cookie has shown that he receives at the address
/// that he names; from then on he costs a bounded part of kMaxRunning.
class Responders {
 public:
  /// Handshakes that run at once. Ours: one takes some 60 KB in OpenSSL.
  static constexpr size_t kMaxRunning = 128;
  /// Those of one host: then its oldest one goes. Ours: an initiator has one for each of its routes.
  static constexpr size_t kMaxRunningPerHost = 32;
  /// One that runs for so long may have to make room. Ours: a round trip is shorter, and there are two or three.
  static constexpr Duration kGrace = 2s;
  /// Datagrams that a handshake takes. Ours: with every flight sent seven times an initiator sends 40.
  static constexpr uint32_t kMaxDatagrams = 64;
  /// Handshakes that are done and remembered, of some 2 KB each. Ours.
  static constexpr size_t kMaxDone = 1024;
  /// Datagrams that wait for the driver; what finds no place is lost, as on the way. Ours.
  static constexpr size_t kMaxReplies = 256;

  /// All of the parameters must outlive this object.
  Responders(PacketPool& pool, HandshakeProvider& handshakes, SecretRandom& random);

  /// A handshake datagram, which is opened in place. nullopt when it was used, else why not.
  std::optional<Drop> onDatagram(const Route& from, ByteSpan bytes, Time now);
  void onTimer(Time now) {
    if (next_ <= now) step(now);
  }

  bool pollDatagram(Datagram& out);
  /// How a handshake ended.
  struct Outcome {
    Route route;
    std::optional<SessionSecrets> secrets;  ///< nullopt: the handshake failed
    std::string error;                      ///< why it failed
  };
  bool pollOutcome(Outcome& out);

  /// When to call onTimer(); kNever: nothing is under way.
  Time nextDeadline() const { return next_; }
  /// A peer came from there before this gateway started: it is no stranger.
  void welcome(const Address& host) { door_.addFriend(host); }
  /// Handshakes that are remembered, finished ones included.
  size_t size() const { return responders_.size(); }

 private:
  struct Responder {
    HandshakeId id;
    std::unique_ptr<Handshake> handshake;
    Time began;
    uint32_t datagrams = 0;
    bool done = false;

    /// When the handshake is forgotten, done or not.
    Time end() const { return began + kHandshakeTimeout; }
  };
  using Table = std::map<Route, Responder>;

  std::optional<Drop> ask(const Route& from, const HandshakeHeader& header, Time now);
  std::optional<Drop> begin(const Route& from, const HandshakeHeader& header, ByteView hello, Time now);
  bool makeRoomFor(const Address& host, Time now);
  void displace(Table::iterator at);
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
  HandshakeSeal seal_;
  Cookies cookies_;
  SeenNonces seen_;
  Door door_;
  Table responders_;
  size_t done_ = 0;               ///< of responders_
  Time next_ = kNever;            ///< no deadline of them is earlier
  std::deque<Datagram> replies_;  ///< sealed, in the order in which they leave
  std::deque<Outcome> outcomes_;
};

}  // namespace braid
