#include "tunnel/peer.h"

#include <algorithm>

#include "tunnel/wire/pin.h"

namespace braid {

Peer::Peer(PeerOptions options, const TunnelOptions& tunnel, PacketPool& pool, HandshakeProvider& handshakes,
           PeerOwner& owner, Random random)
    : options_(std::move(options)),
      tunnel_(tunnel),
      pool_(pool),
      handshakes_(handshakes),
      owner_(owner),
      random_(random) {}

Peer::~Peer() {
  drop(session_);
  for (auto& candidate : candidates_) drop(candidate);
}

void Peer::drop(std::unique_ptr<Session>& session) {
  if (session) owner_.removeSession(session->id());
  session.reset();
}

void Peer::setOptions(PeerOptions options, Time now) {
  bool moved = options.endpoints != options_.endpoints;
  options_ = std::move(options);
  if (session_) session_->setKeepalive(options_.keepalive);
  if (moved) nextTry_ = now;
}

void Peer::setTunables() {
  forEachSession([](Session& s) { s.setTunables(); });
}

void Peer::setUplinks(const std::vector<UplinkAccount>& uplinks, Time now) {
  std::vector<NamedRoute> routes;
  // Nothing is told while nothing is asked for. Numbers are needed by all, then.
  bool telling = std::any_of(uplinks.begin(), uplinks.end(), [](const UplinkAccount& u) {
    return u.spec.preference != PathPreference{} || u.spec.peerCeiling > 0;
  });
  for (size_t number = 1; number <= uplinks.size(); ++number) {
    const UplinkAccount& account = uplinks[number - 1];
    const UplinkSpec& uplink = account.spec;
    if (!account.isUsable()) continue;
    PathPreference own = uplink.preference;
    if (telling) own.uplink = static_cast<uint8_t>(number);
    PathPreference peers = own;
    peers.ceiling = uplink.peerCeiling;
    for (size_t i = 0; i < uplink.sockets.size(); ++i) {
      for (size_t k = 0; k < options_.endpoints.size(); ++k) {
        const Endpoint& remote = options_.endpoints[k];
        if (remote.address.family != uplink.sockets[i].family) continue;
        std::string name = uplink.name + "#" + std::to_string(i) + ">" + remote.toString();
        routes.push_back(
            {name, uplink.name, {uplink.sockets[i].id, {}, remote}, own, peers, account.ceiling});
      }
    }
  }
  // Handshakes go the best way first.
  std::stable_sort(routes.begin(), routes.end(),
                   [](const NamedRoute& a, const NamedRoute& b) { return a.own.use < b.own.use; });
  auto has = [](const std::vector<NamedRoute>& list, const NamedRoute& r) {
    return std::any_of(list.begin(), list.end(), [&](const NamedRoute& x) { return x.name == r.name; });
  };
  if (session_ && session_->role() == KeySchedule::Role::kInitiator) {
    for (const NamedRoute& old : routes_) {
      if (!has(routes, old)) session_->closeSubflow(old.name, now);
    }
  }
  routes_ = std::move(routes);
  std::erase_if(attempts_, [&](const Attempt& a) {
    return std::none_of(routes_.begin(), routes_.end(),
                        [&](const NamedRoute& r) { return r.route == a.route; });
  });
  openSubflows(now);
  nextTry_ = std::min(nextTry_, now);
  connect(now);
}

void Peer::openSubflows(Time now) {
  if (!session_ || session_->role() != KeySchedule::Role::kInitiator) return;
  for (const NamedRoute& r : routes_) {
    if (session_->openSubflow(r.name, r.uplink, r.route, now))
      session_->setPreference(r.name, r.own, r.peers, r.ceiling, now);
  }
}

// ---- initiator

bool Peer::needsSession(Time now) const {
  if (!session_ || session_->over()) return true;
  return session_->unusableSince() != kNever && now - session_->unusableSince() >= kStartOver;
}

void Peer::connect(Time now) {
  if (routes_.empty()) return;
  if (!needsSession(now)) {
    attempts_.clear();
    return;
  }
  checkAttempts(now);
  if (attempts_.empty() && now >= nextTry_) startAttempts(now);
}

// All routes, one after the other, so that a dead first path does not block the start.
void Peer::startAttempts(Time now) {
  Time at = now;
  for (const NamedRoute& r : routes_) {
    attempts_.push_back({r.route, nullptr, at});
    at += kAttemptDelay;
  }
  nextTry_ = now + pause_ + Duration(random_.below(static_cast<uint64_t>(pause_.count() / 4)));
  pause_ = std::min<Duration>(pause_ * 2, kLongestPause);
  checkAttempts(now);
}

void Peer::checkAttempts(Time now) {
  for (size_t i = 0; i < attempts_.size(); ++i) {
    Attempt& a = attempts_[i];
    if (!a.handshake) {
      if (now < a.startAt) continue;
      a.handshake = handshakes_.initiate(options_.pin, now);
    }
    if (a.handshake->deadline() <= now) a.handshake->onTimer(now);
    switch (a.handshake->state()) {
      case Handshake::State::kRunning:
        break;
      case Handshake::State::kDone: {
        SessionSecrets secrets = a.handshake->secrets();
        auto session = std::make_unique<Session>(secrets, KeySchedule::Role::kInitiator, tunnel_, pool_,
                                                 *this, random_.fork(), now);
        attempts_.clear();
        adopt(std::move(session), now);
        openSubflows(now);
        return;
      }
      case Handshake::State::kFailed:
        for (Packet alert = pool_.allocate(); alert && a.handshake->pollDatagram(alert);
             alert = pool_.allocate()) {
          alerts_.push_back({a.route, Ecn::kNotEct, false, std::move(alert)});
        }
        lastError_ = a.handshake->error();
        onEvent({Event::Kind::kHandshakeFailed, {}, a.route.remote.toString() + ": " + lastError_});
        attempts_.erase(attempts_.begin() + static_cast<ptrdiff_t>(i--));
        break;
    }
  }
}

bool Peer::onHandshakeDatagram(const Route& from, ByteView bytes, Time now) {
  for (Attempt& a : attempts_) {
    if (!a.handshake || a.route.socket != from.socket || a.route.remote != from.remote) continue;
    a.handshake->onDatagram(bytes, now);
    connect(now);
    return true;
  }
  return false;
}

bool Peer::pollHandshake(Datagram& out, Time) {
  if (!alerts_.empty()) {
    out = std::move(alerts_.front());
    alerts_.pop_front();
    return true;
  }
  for (Attempt& a : attempts_) {
    if (!a.handshake) continue;
    Packet packet = pool_.allocate();
    if (!packet) return false;
    if (!a.handshake->pollDatagram(packet)) continue;
    out = {a.route, Ecn::kNotEct, false, std::move(packet)};
    return true;
  }
  return false;
}

// ---- responder

void Peer::onAccepted(const SessionSecrets& secrets, Time now) {
  auto session = std::make_unique<Session>(secrets, KeySchedule::Role::kResponder, tunnel_, pool_, *this,
                                           random_.fork(), now);
  if (!owner_.addSession(*this, *session)) return;
  session->setKeepalive(options_.keepalive);
  // The initiator tries several routes at once and keeps the handshake that ends first at its side.
  if (candidates_.size() >= kMaxCandidates) {
    drop(candidates_.front());
    candidates_.erase(candidates_.begin());
  }
  candidates_.push_back(std::move(session));
}

std::optional<Drop> Peer::onDatagram(Session& session, const DatagramHeader& header, const Route& from,
                                     Ecn ecn, Packet datagram, Time now) {
  std::optional<Drop> drop = session.onDatagram(header, from, ecn, std::move(datagram), now);
  auto confirmed = std::find_if(candidates_.begin(), candidates_.end(),
                                [&](const auto& c) { return c->confirmed() && !crosses(*c, now); });
  if (confirmed != candidates_.end()) {
    this->drop(session_);
    session_ = std::move(*confirmed);
    candidates_.erase(confirmed);
    for (auto& candidate : candidates_) this->drop(candidate);
    candidates_.clear();
  }
  if (!up_ && this->session() && !isPathless(now)) {
    up_ = true;
    pause_ = kFirstPause;
    onEvent({Event::Kind::kPeerUp, {}, "is up from " + from.remote.toString()});
  }
  return drop;
}

// For so long that nobody waits any more.
bool Peer::isPathless(Time now) const {
  return session_ && session_->unusableSince() != kNever &&
         now - session_->unusableSince() > tunnel_.repairTime;
}

// Both sides have begun at once and each has the other's session as a candidate. If both took it, neither
// would be left: the one with the smaller id stays, unless it turns out to be of no use.
bool Peer::crosses(const Session& candidate, Time now) const {
  if (needsSession(now) || session_->role() != KeySchedule::Role::kInitiator) return false;
  return std::chrono::abs(candidate.start() - session_->start()) < kStartOver &&
         session_->id() < candidate.id();
}

// ---- both

void Peer::adopt(std::unique_ptr<Session> session, Time) {
  drop(session_);
  if (up_) onEvent({Event::Kind::kPeerDown, {}, "is silent, a new session begins"});
  up_ = false;
  if (!owner_.addSession(*this, *session)) return;
  session->setKeepalive(options_.keepalive);
  session_ = std::move(session);
}

void Peer::onTimer(Time now) {
  forEachSession([&](Session& s) { s.onTimer(now); });
  bool lost = session_ && (session_->over() || now - session_->lastHeard() > kForget);
  if (up_ && (lost || isPathless(now) || !session_)) {
    up_ = false;
    onEvent({Event::Kind::kPeerDown, {}, "is down"});
  }
  if (lost) drop(session_);
  for (auto& candidate : candidates_) {
    if (now - candidate->lastHeard() > kForgetCandidate) drop(candidate);
  }
  std::erase(candidates_, nullptr);
  if (!up_ && session() && session_->anyUsable()) {
    up_ = true;
    onEvent({Event::Kind::kPeerUp, {}, "is up again"});
  }
  connect(now);
}

Time Peer::nextDeadline(Time now) const {
  Time next = kNever;
  if (session_) {
    next = std::min({session_->nextDeadline(now), session_->lastHeard() + kForget});
    if (session_->over()) next = now;
    if (session_->unusableSince() != kNever) {
      if (up_) next = std::min(next, session_->unusableSince() + tunnel_.repairTime + 1ms);
      if (!routes_.empty() && attempts_.empty()) {
        next = std::min(next, std::max(session_->unusableSince() + kStartOver, nextTry_));
      }
    }
  }
  for (const auto& c : candidates_) {
    next = std::min({next, c->nextDeadline(now), c->lastHeard() + kForgetCandidate});
  }
  for (const Attempt& a : attempts_) next = std::min(next, a.handshake ? a.handshake->deadline() : a.startAt);
  if (!session_ && !routes_.empty() && attempts_.empty()) next = std::min(next, nextTry_);
  return next;
}

void Peer::close() {
  forEachSession([](Session& s) { s.close(); });
  attempts_.clear();
  routes_.clear();
}

void Peer::onEvent(Event event) {
  event.peer = options_.name;
  owner_.onEvent(std::move(event));
}

PeerStatus Peer::status(Time now) const {
  PeerStatus s;
  s.name = options_.name;
  s.pin = formatPin(options_.pin);
  s.up = up_;
  if (session_) session_->fill(s, now);
  return s;
}

}  // namespace braid
