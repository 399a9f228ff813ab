#include "tunnel/subflow/route.h"

#include <algorithm>
#include <span>

#include "tunnel/subflow/mtu_discovery.h"

namespace braid {

void PathValidator::start(const Route& route, bool trusted, Duration timeout, Time now) {
  if (route_ == route) return;
  route_ = route;
  trusted_ = trusted;
  sent_ = 0;
  timeout_ = std::max<Duration>(timeout, kLeastTimeout);
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
  return budget() < kSmallestChallenge ? 0
                                       : static_cast<size_t>(std::min<uint64_t>(most, budget()));
}

PathChallengeFrame PathValidator::challenge(SecretRandom& random, Time now) {
  Challenge& c = challenges_.at(static_cast<size_t>(sent_));
  store64(c.token.data(), random.next());
  c.sentAt = now;
  next_ = now + timeout_ * (1 << std::min(sent_, kMaxBackoff));
  ++sent_;
  return {c.token};
}

std::optional<Duration> PathValidator::onResponse(const PathToken& token, const Route& from,
                                                  Time now) {
  const Challenge* answered = find(token);
  if (!answered || !hasSameEnds(*route_, from)) return std::nullopt;
  route_.reset();
  return now - answered->sentAt;
}

bool PathValidator::isStray(const PathToken& token, const Route& from) const {
  return find(token) && !hasSameEnds(*route_, from);
}

const PathValidator::Challenge* PathValidator::find(const PathToken& token) const {
  if (!route_) return nullptr;
  std::span sent(challenges_.data(), static_cast<size_t>(sent_));
  auto it = std::ranges::find(sent, token, &Challenge::token);
  return it == sent.end() ? nullptr : &*it;
}

bool PathValidator::onTimer(Time now) {
  if (!route_ || sent_ < kMaxChallenges || now < next_) return false;
  route_.reset();
  return true;
}

Time PathValidator::nextDeadline() const {
  if (!route_) return kNever;
  bool mute = !trusted_ && sent_ < kMaxChallenges && budget() < kSmallestChallenge;
  return mute ? kNever : next_;  // mute: nothing may be sent until more bytes come from there
}

void PeerRoute::close() {
  validator_.cancel();
  response_.reset();
}

void PeerRoute::onPacket(const Route& from, size_t bytes, bool isNewest, bool isUnproven,
                         Duration timeout, Time now) {
  validator_.learnLocal(from);
  bool isOpen = route_.local.family == Address::Family::kNone;
  if (isOpen && hasSameEnds(route_, from))
    route_.local = from.local;  // until now the kernel chose it
  if (isNewest && from != route_) {
    // RFC 9000 section 9.3: the peer may have a new address. Data is sent there once the peer has
    // answered there.
    validator_.start(from, false, timeout, now);
  } else if (isNewest && validator_.running() && *validator_.route() != route_) {
    validator_.cancel();
    if (isUnproven) prove(timeout, now);
  }
  validator_.onReceived(from, bytes);
}

std::optional<PeerRoute::Proof> PeerRoute::onResponse(const PathToken& token, const Route& from,
                                                      Time now) {
  std::optional<Route> candidate = validator_.route();
  std::optional<Duration> rtt = validator_.onResponse(token, from, now);
  if (!rtt) return std::nullopt;
  return Proof{*candidate, *rtt};
}

bool PeerRoute::hasFrame(Time now) const {
  return response_ || validator_.allowance(MtuDiscovery::kMinDatagram, now) > 0;
}

std::optional<PeerRoute::Frame> PeerRoute::takeFrame(Time now) {
  if (response_) {
    Frame frame{response_->route, std::nullopt, PathResponseFrame{response_->token}, 0, false};
    response_.reset();
    return frame;
  }
  size_t size = validator_.allowance(MtuDiscovery::kMinDatagram, now);
  if (size == 0) return std::nullopt;
  bool ect = validator_.isFirst();  // only the first, because the path may drop marked packets
  return Frame{*validator_.route(), validator_.challenge(random_, now), std::nullopt, size, ect};
}

void PeerRoute::onTimer(bool isUnproven, Duration timeout, Time now) {
  if (validator_.onTimer(now) && isUnproven) prove(timeout, now);
}

}  // namespace braid
