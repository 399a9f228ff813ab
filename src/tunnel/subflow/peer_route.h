#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "tunnel/subflow/path_validator.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// Where the peer of one subflow is: the route in use, the proof that the peer answers there or on another
/// route (RFC 9000 sections 8.2 and 9), and the answer that the peer's own challenge asks for.
///
/// A subflow is given its route, by the configuration or by the first datagram, and proves it. When the
/// newest datagram comes from elsewhere, that route is proven beside the one in use; the subflow takes it
/// over when the answer is there (onResponse, use), for data must not go to an address that nobody has
/// answered from.
class PeerRoute {
 public:
  /// `trusted`: our configuration names the remote address. `random` must outlive this object.
  PeerRoute(const Route& route, bool trusted, SecretRandom& random)
      : random_(random), route_(route), trusted_(trusted) {}

  /// The route in use.
  const Route& route() const { return route_; }
  /// Another route is in use from now on.
  void use(const Route& route) { route_ = route; }
  /// Begins to prove the route in use; `timeout`: for the first answer.
  void prove(Duration timeout, Time now) { validator_.start(route_, trusted_, timeout, now); }
  /// The uplink is gone: nothing is proven, and nothing answered.
  void close();

  // ---- what arrives

  /// A datagram of `bytes` came; `isNewest`: none with a larger number came before. `isUnproven`: the peer
  /// has not answered on the route in use.
  void onPacket(const Route& from, size_t bytes, bool isNewest, bool isUnproven, Duration timeout, Time now);
  /// The peer asks whether we are at `from`.
  void onChallenge(const PathToken& token, const Route& from) { response_ = Response{from, token}; }
  /// What an answer to our challenge proves.
  struct Proof {
    Route route;
    Duration rtt;  ///< of the challenge that was answered
  };
  /// nullopt: the token answers nothing that was asked there.
  std::optional<Proof> onResponse(const PathToken& token, const Route& from, Time now);
  /// The token answers a challenge that went elsewhere.
  bool isStray(const PathToken& token, const Route& from) const { return validator_.isStray(token, from); }

  // ---- what leaves

  /// A challenge or a response, in a datagram of its own.
  struct Frame {
    Route route;
    std::optional<PathChallengeFrame> challenge;
    std::optional<PathResponseFrame> response;
    size_t size = 0;   ///< pad the datagram to this size
    bool ect = false;  ///< send it as ECT(0)
  };
  /// takeFrame() has something to send.
  bool hasFrame(Time now) const;
  /// The frame to send now; nullopt when none is due.
  std::optional<Frame> takeFrame(Time now);
  /// A datagram of `bytes` left, to the route in use or another.
  void onSent(const Route& to, size_t bytes) { validator_.onSent(to, bytes); }
  /// Bytes that may go to the route in use while the peer has not answered there.
  uint64_t unprovenRoom() const { return trusted_ ? UINT64_MAX : validator_.room(route_); }
  /// A response waits to be sent.
  bool owesResponse() const { return response_.has_value(); }
  /// When a challenge is to be sent, or the proof given up; kNever: nothing to prove.
  Time nextDeadline() const { return validator_.nextDeadline(); }
  /// Gives up what is not answered in time. Nothing but the route in use remains then; it is proven anew
  /// while `isUnproven`.
  void onTimer(bool isUnproven, Duration timeout, Time now);

 private:
  struct Response {
    Route route;
    PathToken token;
  };

  SecretRandom& random_;
  Route route_;
  bool trusted_;
  PathValidator validator_;
  std::optional<Response> response_;
};

}  // namespace braid
