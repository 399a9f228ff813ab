#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// Proves that a peer is reachable at a route before data goes there (RFC 9000 section 8.2). One candidate
/// route at a time; the newest wins.
///
/// start(), then challenge() whenever allowance() lets one go, until onResponse() has a result or onTimer() gives
/// the candidate up after kMaxChallenges. Whatever else goes to the candidate counts as well: onReceived(), onSent().
class PathValidator {
 public:
  /// Challenges sent before the candidate is given up.
  static constexpr int kMaxChallenges = 8;
  /// Bytes that may go to an unproven address for each byte that came from it (RFC 9000 section 8.1).
  static constexpr uint64_t kAmplification = 3;
  /// A challenge is not repeated sooner. On a fabric a PTO is a few milliseconds, and a path that does not answer is
  /// challenged without end. Ours.
  static constexpr Duration kLeastTimeout = 20ms;
  /// Pauses between challenges double this often. Ours: a lossy path is not to wait for half a minute.
  static constexpr int kMaxBackoff = 2;
  /// Challenges to an address that is not trusted that may be as large as wanted; later ones are of the
  /// smallest size, so that the bytes that came from there allow many. Ours.
  static constexpr int kLargeChallenges = 2;
  /// A datagram with nothing but a challenge.
  static constexpr size_t kSmallestChallenge = kHeaderSize + 1 + sizeof(PathToken) + kTagSize;

  /// Begins with a candidate; one already under way on the same route goes on. `trusted`: our own configuration names
  /// the address, so nobody can be hurt by amplification. `timeout`: for the first answer, kLeastTimeout at least.
  void start(const Route& route, bool trusted, Duration timeout, Time now);
  void cancel() { route_.reset(); }
  bool running() const { return route_.has_value(); }
  const std::optional<Route>& route() const { return route_; }
  /// Where the candidate leaves the local address to the kernel, takes it from a datagram that came by that
  /// route.
  void learnLocal(const Route& from);
  /// A datagram of `bytes` arrived; it counts if it did from the candidate.
  void onReceived(const Route& from, size_t bytes);
  /// A datagram of `bytes` left; it counts if it went to the candidate.
  void onSent(const Route& to, size_t bytes);
  /// Bytes that may still go to `to`, were it not trusted: what is left of the bound for the candidate, nothing to
  /// any other route.
  uint64_t room(const Route& to) const;

  /// Size in bytes that a challenge datagram may have now, up to `wanted`; 0: none is due or allowed.
  size_t allowance(size_t wanted, Time now) const;
  /// The challenge to send now, which allowance() lets go. Each has a token of its own, so that the answer tells
  /// which one it is for (RFC 9000 section 8.2.1).
  PathChallengeFrame challenge(SecretRandom& random, Time now);
  /// The next challenge is the first one to the candidate.
  bool isFirst() const { return sent_ == 0; }
  /// The response with that token answers a challenge, and came from where that went: the candidate is proven and
  /// forgotten here. Gives the time since that challenge left; nullopt: it proves nothing.
  std::optional<Duration> onResponse(const PathToken& token, const Route& from, Time now);
  /// It answers a challenge, but did not come from there.
  bool isStray(const PathToken& token, const Route& from) const;
  /// Gives the candidate up after the last challenge's time; true then.
  bool onTimer(Time now);
  /// When a challenge is to be sent, or the candidate given up; kNever without a candidate, or while none may
  /// be sent to it.
  Time nextDeadline() const;

 private:
  struct Challenge {
    PathToken token;
    Time sentAt;
  };
  /// The challenge with that token; nullptr: none was sent.
  const Challenge* find(const PathToken& token) const;
  /// Bytes that may still go to an address that is not trusted.
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

}  // namespace braid
