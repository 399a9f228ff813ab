#include "tunnel/peer/dialing.h"

#include <algorithm>
#include <array>
#include <utility>

namespace braid {

ClientHandshake::ClientHandshake(HandshakeProvider& provider, SecretRandom& random, const Pin& peer,
                                 Time now)
    : random_(random),
      began_(now),
      sentAt_(now),
      seal_(HandshakeEnvelope::Side::kInitiator, peer),
      handshake_(provider.initiate(peer, now)) {
  random_.fill(id_);
}

void ClientHandshake::onTimer(Time now) {
  if (handshake_->deadline() > now) return;
  sentAt_ = now;
  handshake_->onTimer(now);
}

bool ClientHandshake::onDatagram(ByteView bytes, Time now) {
  if (bytes.size() > kMaxHandshakeDatagram) return false;
  std::array<uint8_t, kMaxHandshakeDatagram> copy;
  std::ranges::copy(bytes, copy.begin());
  auto opened = seal_.open(ByteSpan(copy).first(bytes.size()));
  if (!opened || opened->header.id != id_) return false;
  if (!std::exchange(isAnswered_, true))
    handshake_->onFirstAnswer(now - sentAt_, now - began_, now);
  if (opened->header.kind == HandshakeKind::kCookieRequest) {
    onCookie(opened->body);
  } else if (opened->header.kind == HandshakeKind::kResponder) {
    handshake_->onDatagram(opened->body, now);
  }
  return true;
}

// A repeated request with the same cookie is ignored: otherwise an attacker that replays one could
// make this side send datagrams. If the hello was lost, the handshake's timer repeats it.
void ClientHandshake::onCookie(ByteView cookie) {
  if (cookie.size() != cookie_.size() || hello_.empty() || std::ranges::equal(cookie, cookie_))
    return;
  std::ranges::copy(cookie, cookie_.begin());
  again_ = true;
}

bool ClientHandshake::pollDatagram(Packet& out) {
  if (again_) {
    again_ = false;
    if (hello_.size() > out.tailroom()) return false;
    std::ranges::copy(hello_, out.append(hello_.size()));
  } else if (handshake_->pollDatagram(out)) {
    if (isClientHello(out.view())) hello_.assign(out.view().begin(), out.view().end());
  } else {
    return false;
  }
  HandshakeHeader header{HandshakeKind::kInitiator, id_, {}, cookie_};
  random_.fill(header.nonce);
  return seal_.seal(header, out);
}

void AttemptIndex::remove(const Route& route, Peer& peer) {
  auto [first, last] = peers_.equal_range(keyOf(route));
  auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second == &peer; });
  if (found != last) peers_.erase(found);
}

bool ConnectionRace::begin(const std::vector<NamedRoute>& routes, Time now) {
  if (isTrying() || now < nextRound_) return false;
  failed_.clear();
  Time at = now;
  for (const NamedRoute& r : routes) {
    attempts_.push_back({r.route, nullptr, at});
    at += kAttemptDelay;
  }
  nextRound_ = now + pause_ + Duration(random_.below(static_cast<uint64_t>(pause_.count() / 4)));
  pause_ = std::min<Duration>(pause_ * 2, kLongestPause);
  return true;
}

// New routes do not wait for the next round: those that are tried already may all be dead. They
// keep the distance from the attempts before them, also when a round is old. A route that has
// failed in this round would only fail again.
void ConnectionRace::retarget(const std::vector<NamedRoute>& routes, Time now) {
  if (!isTrying()) return;
  auto stays = [&](const Route& route) {
    return std::ranges::any_of(routes, [&](const NamedRoute& r) { return r.route == route; });
  };
  std::erase_if(failed_, [&](const Route& route) { return !stays(route); });
  std::erase_if(attempts_, [&](Attempt& a) {
    bool gone = !stays(a.route);
    if (gone) end(a);
    return gone;
  });
  Time at = now;
  if (!attempts_.empty()) at = std::max(attempts_.back().startAt + kAttemptDelay, now);
  for (const NamedRoute& r : routes) {
    bool known =
        std::ranges::find(failed_, r.route) != failed_.end() ||
        std::ranges::any_of(attempts_, [&](const Attempt& a) { return a.route == r.route; });
    if (known) continue;
    attempts_.push_back({r.route, nullptr, at});
    at += kAttemptDelay;
  }
}

void ConnectionRace::cancel() {
  for (Attempt& a : attempts_) end(a);
  attempts_.clear();
}

void ConnectionRace::end(Attempt& a) {
  if (a.initiator) index_.remove(a.route, peer_);
}

bool ConnectionRace::onDatagram(const Route& from, ByteView bytes, Time now) {
  for (Attempt& a : attempts_) {
    if (!a.initiator || !hasSameEnds(a.route, from)) continue;
    if (a.initiator->onDatagram(bytes, now)) return true;
  }
  return false;
}

std::optional<SessionSecrets> ConnectionRace::step(const Pin& pin, Time now) {
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    Attempt& a = *it;
    if (!a.initiator) {
      if (now < a.startAt) {
        ++it;
        continue;
      }
      a.initiator = std::make_unique<ClientHandshake>(handshakes_, random_, pin, now);
      index_.add(a.route, peer_);
    }
    if (a.deadline() <= now) a.initiator->onTimer(now);
    switch (a.initiator->handshake().state()) {
      case Handshake::State::kRunning:
        ++it;
        break;
      case Handshake::State::kDone: {
        SessionSecrets secrets = a.initiator->handshake().secrets();
        cancel();
        return secrets;
      }
      case Handshake::State::kClosed:
      case Handshake::State::kFailed:
        fail(a);
        end(a);
        it = attempts_.erase(it);
        break;
    }
  }
  return std::nullopt;
}

void ConnectionRace::fail(Attempt& a) {
  for (Packet alert = pool_.allocate(); alert && a.initiator->pollDatagram(alert);
       alert = pool_.allocate())
    alerts_.push_back({a.route, Ecn::kNotEct, std::move(alert)});
  failed_.push_back(a.route);
  failures_.push_back(a.route.remote.toString() + ": " +
                      std::string(a.initiator->handshake().error()));
}

bool ConnectionRace::pollDatagram(Datagram& out) {
  if (!alerts_.empty()) {
    out = std::move(alerts_.front());
    alerts_.pop_front();
    return true;
  }
  for (Attempt& a : attempts_) {
    if (!a.initiator) continue;
    Packet packet = pool_.allocate();
    if (!packet) return false;
    if (!a.initiator->pollDatagram(packet)) continue;
    out = {a.route, Ecn::kNotEct, std::move(packet)};
    return true;
  }
  return false;
}

bool ConnectionRace::pollFailure(std::string& out) {
  if (failures_.empty()) return false;
  out = std::move(failures_.front());
  failures_.pop_front();
  return true;
}

Time ConnectionRace::nextDeadline() const {
  Time next = kNever;
  for (const Attempt& a : attempts_) next = std::min(next, a.deadline());
  return next;
}

}  // namespace braid
