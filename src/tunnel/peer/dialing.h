#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/api/options.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/peer/uplinks.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// Decides when the initiator of a session makes a handshake beside it for new keys.
class RekeyTimer {
 public:
  /// Pause after a failed handshake; it doubles up to kLongestPause. Chosen: longer than
  /// kHandshakeTimeout.
  static constexpr Duration kFirstPause = 15s;
  static constexpr Duration kLongestPause = 5min;

  /// `random` must outlive this object.
  explicit RekeyTimer(SecretRandom& random) : random_(random) { plan(); }

  /// When the next handshake is due, if the present keys came at `renewedAt` and are to be replaced
  /// `after` that, or up to a quarter of it earlier. The random part makes gateways that began
  /// together drift apart. kNever when `after` is 0.
  Time dueAt(Time renewedAt, Duration after) const {
    if (after == Duration{}) return kNever;
    return std::max(renewedAt + after - after / 4 * early_ / kParts, notBefore_);
  }
  /// A handshake for new keys is done.
  void onHandshake() {
    notBefore_ = Time::min();
    pause_ = kFirstPause;
    plan();
  }
  /// A handshake for new keys has failed.
  void onFailed(Time now) {
    ++failed_;
    notBefore_ = now + pause_;
    pause_ = std::min<Duration>(pause_ * 2, kLongestPause);
  }
  uint64_t failed() const { return failed_; }

 private:
  static constexpr int kParts = 256;
  void plan() { early_ = static_cast<int>(random_.below(kParts)); }

  SecretRandom& random_;
  int early_ = 0;  ///< how early, in 1/kParts
  Time notBefore_ = Time::min();
  Duration pause_ = kFirstPause;
  uint64_t failed_ = 0;
};

/// The initiator's side of one handshake with its envelope: it seals what is sent, opens what
/// arrives, and repeats its hello with the cookie that the responder asks for.
class ClientHandshake {
 public:
  /// `random` must outlive this object.
  ClientHandshake(HandshakeProvider& provider, SecretRandom& random, const Pin& peer, Time now);

  /// False when the datagram does not belong to this handshake, or its sender does not know the
  /// responder's pin.
  bool onDatagram(ByteView bytes, Time now);
  void onTimer(Time now);
  /// As Handshake::pollDatagram(), but sealed and ready to send.
  bool pollDatagram(Packet& out);
  const Handshake& handshake() const { return *handshake_; }
  /// The responder has answered, perhaps only with a cookie request.
  bool isAnswered() const { return isAnswered_; }

 private:
  void onCookie(ByteView cookie);

  SecretRandom& random_;
  Time began_;
  Time sentAt_;  ///< when the last flight was sent, or sent again
  bool isAnswered_ = false;
  HandshakeEnvelope seal_;
  std::unique_ptr<Handshake> handshake_;
  HandshakeId id_;
  HandshakeCookie cookie_{};
  std::vector<uint8_t> hello_;  ///< the last hello that was sent, to be repeated with the cookie
  bool again_ = false;          ///< hello_ is to be sent again, with the cookie
};

class Peer;

/// Which peers have handshakes of their own under way, by route. The local address of a route is
/// ignored, because the kernel chooses it.
class AttemptIndex {
 public:
  void add(const Route& route, Peer& peer) { peers_.emplace(keyOf(route), &peer); }
  /// Undoes one add().
  void remove(const Route& route, Peer& peer);
  /// Calls visit(Peer&) for each peer with a handshake on that route: at most one, unless several
  /// peers are configured with the same endpoint.
  template <typename F>
  void forEachOn(const Route& route, F&& visit) const {
    firstOn(route, [&](Peer& peer) { return visit(peer), false; });
  }
  /// The first of these peers for which take(Peer&) is true, or nullptr. take() may change the
  /// index when it returns true.
  template <typename F>
  Peer* firstOn(const Route& route, F&& take) const {
    auto [first, last] = peers_.equal_range(keyOf(route));
    for (; first != last; ++first) {
      Peer* peer = first->second;
      if (take(*peer)) return peer;
    }
    return nullptr;
  }

 private:
  using Key = std::pair<SocketId, Endpoint>;
  static Key keyOf(const Route& route) { return {route.socket, route.remote}; }
  std::multimap<Key, Peer*> peers_;
};

/// The initiator's handshakes with one peer. A round tries every route, one after the other, so
/// that a dead first path does not block the start. The first handshake that is done ends the
/// round. The pause between rounds grows.
class ConnectionRace {
 public:
  /// The next route is tried when the ones before have not answered for this time (RFC 8305 section
  /// 5: connection attempt delay).
  static constexpr Duration kAttemptDelay = 250ms;
  /// Pause from the start of one round to the start of the next. Up to a quarter of it is added at
  /// random. It doubles up to kLongestPause.
  static constexpr Duration kFirstPause = 500ms;
  static constexpr Duration kLongestPause = 8s;

  /// All arguments must outlive this object.
  ConnectionRace(Peer& peer, PacketPool& pool, HandshakeProvider& handshakes, AttemptIndex& index,
                 SecretRandom& random)
      : peer_(peer), pool_(pool), handshakes_(handshakes), index_(index), random_(random) {}
  ~ConnectionRace() { cancel(); }
  ConnectionRace(const ConnectionRace&) = delete;
  ConnectionRace& operator=(const ConnectionRace&) = delete;

  /// A round is under way.
  bool isTrying() const { return !attempts_.empty(); }
  /// The next round may begin at this time.
  Time nextRound() const { return nextRound_; }
  void setNextRound(Time at) { nextRound_ = at; }
  /// The peer was reached: the next pause is kFirstPause again.
  void resetPause() { pause_ = kFirstPause; }

  /// Begins a round, unless one is under way or it is too early. True when it did; call step()
  /// then.
  bool begin(const std::vector<NamedRoute>& routes, Time now);
  /// The routes have changed. A round that is under way ends its attempts on those that are gone,
  /// and tries new ones after the others, one after the other. Does not repeat what has failed in
  /// this round.
  void retarget(const std::vector<NamedRoute>& routes, Time now);
  /// Ends the round without a result.
  void cancel();

  /// True when the datagram belongs to one of the handshakes, which takes it. Call step() then.
  bool onDatagram(const Route& from, ByteView bytes, Time now);
  /// Starts and retransmits what is due. Returns the secrets of a handshake that is done, if there
  /// is one; the round has then ended.
  std::optional<SessionSecrets> step(const Pin& pin, Time now);

  bool pollDatagram(Datagram& out);
  /// Gives a log line about a handshake that failed; false when there is none.
  bool pollFailure(std::string& out);
  /// When to call step() while a round is under way; kNever otherwise.
  Time nextDeadline() const;

 private:
  struct Attempt {
    Route route;
    std::unique_ptr<ClientHandshake> initiator;  ///< nullptr: not started yet
    Time startAt;
    Time deadline() const { return initiator ? initiator->handshake().deadline() : startAt; }
  };
  void fail(Attempt& attempt);
  void end(Attempt& attempt);

  Peer& peer_;
  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  AttemptIndex& index_;
  SecretRandom& random_;
  std::vector<Attempt> attempts_;
  std::vector<Route> failed_;    ///< in this round
  std::deque<Datagram> alerts_;  ///< last datagrams (TLS alerts) of failed handshakes
  std::deque<std::string> failures_;
  Time nextRound_ = Time::min();
  Duration pause_ = kFirstPause;
};

}  // namespace braid
