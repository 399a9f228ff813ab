#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/packet.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// The driver's name for one UDP socket.
using SocketId = uint16_t;

/// Where a datagram came from or is sent to: one of the driver's sockets, the local address on it
/// (unset: the kernel chooses) and the remote endpoint.
struct Route {
  SocketId socket = 0;
  Address local;
  Endpoint remote;
  auto operator<=>(const Route&) const = default;
};

/// Whether socket and remote endpoint are the same. The local address may differ: a configured
/// route leaves it open.
inline bool hasSameEnds(const Route& a, const Route& b) {
  return a.socket == b.socket && a.remote == b.remote;
}

/// Bytes of the IP and UDP headers around a datagram.
inline size_t outerHeaders(const Route& route) {
  return route.remote.address.isV6() ? 48 : 28;
}

/// A datagram to send, with Don't Fragment set.
struct Datagram {
  Route route;
  Ecn ecn = Ecn::kNotEct;
  Packet bytes;
};

/// Path validation: proves that a peer is reachable at a route before data is sent there (RFC 9000
/// section 8.2). There is one candidate route at a time; a newer one replaces it.
///
/// Call start(), then challenge() whenever allowance() permits it, until onResponse() has a result
/// or onTimer() gives the candidate up after kMaxChallenges. Everything else received from or sent
/// to the candidate counts for the amplification limit: report it by onReceived() and onSent().
class PathValidator {
 public:
  /// Challenges sent before the candidate is given up.
  static constexpr int kMaxChallenges = 8;
  /// Amplification limit: bytes that may be sent to an unproven address for each byte that came
  /// from it (RFC 9000 section 8.1).
  static constexpr uint64_t kAmplification = 3;
  /// A challenge is not repeated sooner than this. On a fabric a PTO is a few milliseconds, and a
  /// path that does not answer is challenged forever.
  static constexpr Duration kLeastTimeout = 20ms;
  /// The pause between challenges doubles at most this many times, so that a lossy path does not
  /// wait for half a minute.
  static constexpr int kMaxBackoff = 2;
  /// To an untrusted address, the first kLargeChallenges challenges may have any size. Later ones
  /// have the smallest size, so that the amplification limit allows many of them.
  static constexpr int kLargeChallenges = 2;
  /// Size of a datagram that holds only a challenge.
  static constexpr size_t kSmallestChallenge = kHeaderSize + 1 + sizeof(PathToken) + kTagSize;

  /// Starts to validate a candidate; a validation of the same route that is already running
  /// continues. `trusted`: our own configuration names the address, so the amplification limit does
  /// not apply. `timeout`: for the first answer; less than kLeastTimeout counts as that.
  void start(const Route& route, bool trusted, Duration timeout, Time now);
  void cancel() { route_.reset(); }
  bool running() const { return route_.has_value(); }
  const std::optional<Route>& route() const { return route_; }
  /// When the candidate leaves the local address to the kernel: takes it from a datagram that came
  /// by that route.
  void learnLocal(const Route& from);
  /// A datagram of `bytes` arrived. It counts if it came from the candidate.
  void onReceived(const Route& from, size_t bytes);
  /// A datagram of `bytes` was sent. It counts if it was sent to the candidate.
  void onSent(const Route& to, size_t bytes);
  /// Bytes that may still be sent to `to` if it is not trusted: what the amplification limit leaves
  /// for the candidate, 0 for any other route.
  uint64_t room(const Route& to) const;

  /// Size in bytes that a challenge datagram may have now, up to `wanted`; 0: no challenge is due
  /// or allowed.
  size_t allowance(size_t wanted, Time now) const;
  /// The challenge to send now; allowance() must permit it. Each challenge has its own token, so
  /// that the answer tells which one it is for (RFC 9000 section 8.2.1).
  PathChallengeFrame challenge(SecretRandom& random, Time now);
  /// Whether the next challenge is the first one to the candidate.
  bool isFirst() const { return sent_ == 0; }
  /// A response came. When its token answers a challenge, and it came from where that challenge was
  /// sent, the candidate is proven and forgotten here, and the time since that challenge is
  /// returned. nullopt: the response proves nothing.
  std::optional<Duration> onResponse(const PathToken& token, const Route& from, Time now);
  /// Whether the token answers a challenge, but the response did not come from where that was sent.
  bool isStray(const PathToken& token, const Route& from) const;
  /// Gives the candidate up when the time of the last challenge is over; returns true then.
  bool onTimer(Time now);
  /// When a challenge is to be sent or the candidate is to be given up; kNever without a candidate,
  /// or while no challenge may be sent to it.
  Time nextDeadline() const;

 private:
  struct Challenge {
    PathToken token;
    Time sentAt;
  };
  /// The challenge with that token; nullptr: none was sent.
  const Challenge* find(const PathToken& token) const;
  /// Bytes that may still be sent to the candidate if it is not trusted.
  uint64_t budget() const {
    uint64_t all = bytesReceived_ * kAmplification;
    return all - std::min(all, bytesSent_);
  }

  std::optional<Route> route_;
  std::array<Challenge, kMaxChallenges> challenges_;  ///< the first sent_ of them
  int sent_ = 0;
  bool trusted_ = false;
  Duration timeout_{};
  Time next_;
  uint64_t bytesReceived_ = 0;
  uint64_t bytesSent_ = 0;
};

/// Where the peer of one subflow is: the route in use, the validation of that or another route (RFC
/// 9000 sections 8.2 and 9), and the response to the peer's own challenge.
///
/// A subflow gets its first route from the configuration or from the first datagram, and validates
/// it. When the newest packet comes from elsewhere, that route is validated while the old one stays
/// in use. The subflow changes to it once the answer is there (onResponse, use), because data must
/// not be sent to an address from which nobody has answered.
class PeerRoute {
 public:
  /// `trusted`: our configuration names the remote address. `random` must outlive this object.
  PeerRoute(const Route& route, bool trusted, SecretRandom& random)
      : random_(random), route_(route), trusted_(trusted) {}

  /// The route in use.
  const Route& route() const { return route_; }
  /// Uses another route from now on.
  void use(const Route& route) { route_ = route; }
  /// Starts to validate the route in use; `timeout`: for the first answer.
  void prove(Duration timeout, Time now) { validator_.start(route_, trusted_, timeout, now); }
  /// The uplink is gone: stops the validation and drops a response that was to be sent.
  void close();

  // ---- what arrives

  /// A datagram of `bytes` came. `isNewest`: no packet with a larger number came before.
  /// `isUnproven`: the peer has not answered on the route in use.
  void onPacket(const Route& from, size_t bytes, bool isNewest, bool isUnproven, Duration timeout,
                Time now);
  /// The peer has sent a challenge from `from`.
  void onChallenge(const PathToken& token, const Route& from) { response_ = Response{from, token}; }
  /// What an answer to our challenge proves.
  struct Proof {
    Route route;
    Duration rtt;  ///< of the challenge that was answered
  };
  /// nullopt: the token does not answer a challenge that was sent there.
  std::optional<Proof> onResponse(const PathToken& token, const Route& from, Time now);
  /// Whether the token answers a challenge that was sent elsewhere.
  bool isStray(const PathToken& token, const Route& from) const {
    return validator_.isStray(token, from);
  }

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
  /// Bytes that may be sent to the route in use while the peer has not answered there.
  uint64_t unprovenRoom() const { return trusted_ ? UINT64_MAX : validator_.room(route_); }
  /// A response waits to be sent.
  bool owesResponse() const { return response_.has_value(); }
  /// When a challenge is to be sent or the validation is to be given up; kNever: nothing is being
  /// validated.
  Time nextDeadline() const { return validator_.nextDeadline(); }
  /// Gives up a candidate that did not answer in time. Only the route in use remains then; while
  /// `isUnproven`, it is validated again.
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
