#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/handshake.h"
#include "tunnel/io.h"

namespace braid {

/// Handshakes that others began. Each is kept while it runs and for a while after, because a peer that has missed
/// our last flight sends its own again. A stranger costs no state until his cookie has shown that he receives at the
/// address that he names; from then on he costs a bounded part of kMaxResponders.
class Responders {
 public:
  /// Handshakes of others at once; more are refused until some end. Ours.
  static constexpr size_t kMaxResponders = 256;
  /// Unfinished ones of one host, so that a stranger with a real address does not take all places. Ours.
  static constexpr size_t kMaxRespondersPerHost = 32;
  /// A new hello from the same address is a duplicate while the handshake is younger than this; later the
  /// peer has started anew. Ours.
  static constexpr Duration kStale = 3s;
  static constexpr Duration kStaleDone = 1s;
  /// Stateless replies and alerts that wait for the driver. Ours.
  static constexpr size_t kMaxReplies = 256;

  /// `pool` and `handshakes` must outlive this object.
  Responders(PacketPool& pool, HandshakeProvider& handshakes) : pool_(pool), handshakes_(handshakes) {}

  /// A datagram of a handshake that is none of ours. nullopt when it was used, else why not.
  std::optional<Drop> onDatagram(const Route& from, ByteView bytes, Time now);
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
  /// Handshakes that are remembered, finished ones included.
  size_t size() const { return responders_.size(); }

 private:
  struct Responder {
    std::unique_ptr<Handshake> handshake;
    Time began;
    bool done = false;

    bool isStale(Time now) const { return now - began > (done ? kStaleDone : kStale); }
    /// When the handshake is forgotten, done or not.
    Time end() const { return began + kHandshakeTimeout; }
  };

  bool mayBegin(const Address& host) const;
  void dropOldestDone();
  void step(Time now);

  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  std::map<Route, Responder> responders_;
  Time next_ = kNever;            ///< the earliest deadline of them, as of step()
  bool speak_ = false;            ///< some handshake may have something to send
  std::deque<Datagram> replies_;  ///< to strangers, and last words of failed handshakes
  std::deque<Outcome> outcomes_;
};

}  // namespace braid
