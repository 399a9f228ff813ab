#include "tunnel/subflow/path_validator.h"

#include <algorithm>

namespace braid {

void PathValidator::start(const Route& route, bool trusted, Duration timeout, SecretRandom& random,
                          Time now) {
  if (route_ == route) return;
  route_ = route;
  trusted_ = trusted;
  store64(token_.data(), random.next());
  sent_ = 0;
  timeout_ = timeout;
  next_ = now;
  bytesReceived_ = bytesSent_ = 0;
}

void PathValidator::learnLocal(const Route& from) {
  if (!route_ || route_->local.family != Address::Family::kNone) return;
  if (hasSameEnds(*route_, from)) route_->local = from.local;
}

void PathValidator::onReceived(const Route& from, size_t bytes) {
  if (route_ == from) bytesReceived_ += bytes;
}

void PathValidator::onSent(const Route& to, size_t bytes) {
  if (route_ == to) bytesSent_ += bytes;
}

uint64_t PathValidator::room(const Route& to) const {
  return route_ == to ? budget() : 0;
}

size_t PathValidator::allowance(size_t wanted, Time now) const {
  if (!route_ || now < next_ || sent_ >= kMaxChallenges) return 0;
  if (trusted_) return wanted;
  size_t most = sent_ < kLargeChallenges ? wanted : kSmallestChallenge;
  return budget() < kSmallestChallenge ? 0 : static_cast<size_t>(std::min<uint64_t>(most, budget()));
}

PathChallengeFrame PathValidator::challenge(Time now) {
  lastSent_ = now;
  next_ = now + timeout_ * (1 << std::min(sent_, kMaxBackoff));
  ++sent_;
  return {token_};
}

bool PathValidator::onResponse(const PathToken& token, const Route& from) {
  if (!answers(token) || !hasSameEnds(*route_, from)) return false;
  route_.reset();
  return true;
}

bool PathValidator::isStray(const PathToken& token, const Route& from) const {
  return answers(token) && !hasSameEnds(*route_, from);
}

std::optional<Duration> PathValidator::rtt(Time now) const {
  if (sent_ != 1) return std::nullopt;
  return now - lastSent_;
}

bool PathValidator::onTimer(Time now) {
  if (!route_ || sent_ < kMaxChallenges || now < next_) return false;
  route_.reset();
  return true;
}

Time PathValidator::nextDeadline() const {
  if (!route_) return kNever;
  bool mute = !trusted_ && sent_ < kMaxChallenges && budget() < kSmallestChallenge;
  return mute ? kNever : next_;  // more may be sent only when more has come
}

}  // namespace braid
