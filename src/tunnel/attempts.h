#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/handshake.h"
#include "tunnel/initiator.h"
#include "tunnel/io.h"
#include "tunnel/peer_routes.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

class Peer;

/// Which peers have handshakes of their own under way, by route. The local address does not count: the kernel
/// chooses it.
class AttemptIndex {
 public:
  void add(const Route& route, Peer& peer) { peers_.emplace(keyOf(route), &peer); }
  /// Takes back one add().
  void remove(const Route& route, Peer& peer);
  /// Calls visit(Peer&) for each peer with a handshake on that route: one, unless several peers are configured
  /// with the same endpoint.
  template <typename F>
  void forEachOn(const Route& route, F&& visit) const {
    firstOn(route, [&](Peer& peer) { return visit(peer), false; });
  }
  /// The first of them for which take(Peer&) holds, which may then change the index; nullptr: none.
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

/// The initiator's handshakes with one peer. A round tries every route, one after the other, so that a dead
/// first path does not block the start; the first handshake that is done ends it. Between rounds is a pause
/// that grows.
class Attempts {
 public:
  /// A second route is tried when the first has not answered for so long (RFC 8305 section 5: connection
  /// attempt delay).
  static constexpr Duration kAttemptDelay = 250ms;
  /// Pause from one round's start to the next one's, with up to a quarter of it added at random; doubles up to
  /// the longest. Ours.
  static constexpr Duration kFirstPause = 500ms;
  static constexpr Duration kLongestPause = 8s;

  /// All of the parameters must outlive this object.
  Attempts(Peer& peer, PacketPool& pool, HandshakeProvider& handshakes, AttemptIndex& index,
           SecretRandom& random)
      : peer_(peer), pool_(pool), handshakes_(handshakes), index_(index), random_(random) {}
  ~Attempts() { cancel(); }
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  /// A round is under way.
  bool isTrying() const { return !attempts_.empty(); }
  /// A round may begin when it is that time.
  Time nextRound() const { return nextRound_; }
  void setNextRound(Time at) { nextRound_ = at; }
  /// The peer was reached: the next pause is short again.
  void resetPause() { pause_ = kFirstPause; }

  /// Begins a round unless one is under way or it is too early. True when it did; step() follows.
  bool begin(const std::vector<NamedRoute>& routes, Time now);
  /// Ends attempts on routes that are none of these.
  void keepOnly(const std::vector<NamedRoute>& routes);
  /// Ends the round.
  void cancel();

  /// True when the datagram belongs to one of the handshakes, which takes it. step() follows.
  bool onDatagram(const Route& from, ByteView bytes, Time now);
  /// Starts and retransmits what is due. The secrets of the handshake that is done, if one is: then the round
  /// has ended.
  std::optional<SessionSecrets> step(const Pin& pin, Time now);

  bool pollDatagram(Datagram& out);
  /// A line on a handshake that failed.
  bool pollFailure(std::string& out);
  /// When to call step() while a round is under way; kNever otherwise.
  Time nextDeadline() const;

 private:
  struct Attempt {
    Route route;
    std::unique_ptr<Initiator> initiator;  ///< nullptr: its turn has not come
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
  std::deque<Datagram> alerts_;  ///< last words of failed handshakes
  std::deque<std::string> failures_;
  Time nextRound_ = Time::min();
  Duration pause_ = kFirstPause;
};

}  // namespace braid
