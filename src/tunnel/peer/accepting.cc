#include "tunnel/peer/accepting.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace braid {

std::array<size_t, 4> SeenNonces::placesOf(const HandshakeNonce& nonce) {
  uint64_t first = load64(nonce.data()), last = load32(nonce.data() + 8);
  return {first % kBits, (first >> 18) % kBits, (first >> 36) % kBits,
          (last ^ first >> 54) % kBits};
}

bool SeenNonces::seen(const HandshakeNonce& nonce) const {
  std::array places = placesOf(nonce);
  auto isIn = [&](const Filter& filter) {
    return std::ranges::all_of(places, [&](size_t place) { return filter[place]; });
  };
  return isIn(present_) || isIn(before_);
}

void SeenNonces::add(const HandshakeNonce& nonce) {
  if (added_ == kGeneration) {
    before_ = present_;
    present_.reset();
    added_ = 0;
  }
  ++added_;
  for (size_t place : placesOf(nonce)) present_.set(place);
}

HandshakeServer::HandshakeServer(PacketPool& pool, HandshakeProvider& handshakes,
                                 SecretRandom& random)
    : pool_(pool),
      handshakes_(handshakes),
      random_(random),
      seal_(HandshakeEnvelope::Side::kResponder, handshakes.ownPin()),
      limiter_(random.next()) {}

void HandshakeServer::setListening(bool on) {
  listens_ = on;
  if (!on) forgetAll();
}

std::optional<Drop> HandshakeServer::onDatagram(const Route& from, ByteSpan bytes, Time now) {
  if (!listens_) return Drop::kHandshakeGarbage;
  // Other kinds answer a handshake that this side began and that is over.
  if (bytes.empty() || bytes[0] != static_cast<uint8_t>(HandshakeKind::kInitiator))
    return Drop::kHandshakeGarbage;
  auto opened = seal_.open(bytes);
  if (!opened) return Drop::kHandshakeSeal;
  const HandshakeHeader& header = opened->header;
  if (seen_.seen(header.nonce)) return Drop::kHandshakeReplay;  // a replay gets no answer
  seen_.add(header.nonce);
  auto running = handshakeServer_.find(from);
  if (running != handshakeServer_.end() && running->second.id == header.id)
    return feed(running, opened->body, now);
  cookies_.rotate(now, [&](ByteSpan secret) { random_.fill(secret); });
  bool hasCookie = header.cookie != HandshakeCookie{};  // hellos without a cookie cost no hash
  if (!hasCookie || !cookies_.check(from.remote, header.cookie)) return ask(from, header, now);
  if (!isClientHello(opened->body)) return Drop::kHandshakeGarbage;
  return begin(from, header, opened->body, now);
}

std::optional<Drop> HandshakeServer::ask(const Route& from, const HandshakeHeader& header,
                                         Time now) {
  if (replies_.size() >= kMaxReplies || !limiter_.mayAsk(from.remote.address, now))
    return Drop::kHandshakeLimit;
  Packet reply = pool_.allocate();
  if (!reply) return Drop::kNoBuffer;
  HandshakeCookie cookie = cookies_.make(from.remote);
  std::ranges::copy(cookie, reply.append(cookie.size()));
  send(HandshakeKind::kCookieRequest, header.id, from, std::move(reply));
  return std::nullopt;
}

// A new handshake on a route replaces the previous one on it.
std::optional<Drop> HandshakeServer::begin(const Route& from, const HandshakeHeader& header,
                                           ByteView hello, Time now) {
  std::optional<HandshakeOrigin> origin = limiter_.mayBegin(from.remote.address, now);
  if (!origin) return Drop::kHandshakeLimit;
  auto before = handshakeServer_.find(from);
  bool hasPlace = before != handshakeServer_.end() && !before->second.done;
  if (!hasPlace && !makeRoomFor(*origin, now)) return Drop::kHandshakeLimit;
  if (before != handshakeServer_.end()) forget(before);
  Responder made{header.id, *origin, handshakes_.accept(now), now};
  return feed(handshakeServer_.emplace(from, std::move(made)).first, hello, now);
}

std::optional<Drop> HandshakeServer::feed(Table::iterator at, ByteView body, Time now) {
  Responder& responder = at->second;
  if (++responder.datagrams > kMaxDatagrams) return Drop::kHandshakeLimit;
  responder.handshake->onDatagram(body, now);
  settle(at, now);
  return std::nullopt;
}

// Makes room for a handshake. When kMaxRunning run, the group (a network or a key) with most of
// them loses one: the oldest one of its host with most. So a stranger with many addresses of a
// network displaces itself. A known host's handshake is evicted only for one of another known host.
bool HandshakeServer::makeRoomFor(const HandshakeOrigin& origin, Time now) {
  struct Held {
    size_t count = 0;
    Table::iterator oldest;

    const Responder& last() const { return oldest->second; }
    void add(Table::iterator it) {
      if (count++ == 0 || it->second.began < last().began) oldest = it;
    }
  };
  std::map<decltype(origin.group), Held> groups;
  std::map<HandshakeOrigin, Held> origins;
  for (auto it = handshakeServer_.begin(); it != handshakeServer_.end(); ++it) {
    if (it->second.done) continue;
    groups[it->second.origin.group].add(it);
    origins[it->second.origin].add(it);
  }
  auto countOf = [](const auto& table, const auto& key) {
    auto found = table.find(key);
    return found == table.end() ? 0 : found->second.count;
  };
  auto heaviest = [](const auto& table) {
    return *std::ranges::max_element(table, {}, [](const auto& entry) {
      const Held& held = entry.second;
      return std::tuple(!held.last().origin.isKnown(), held.count,
                        -held.last().began.time_since_epoch());
    });
  };
  const size_t own = countOf(origins, origin), ownGroup = countOf(groups, origin.group);
  if (own >= kMaxRunningOfOne) return displace(origins[origin].oldest), true;
  if (handshakeServer_.size() - done_ < kMaxRunning) return true;
  const auto most = heaviest(groups);
  std::erase_if(origins, [&](const auto& entry) { return entry.first.group != most.first; });
  const Held held = heaviest(origins).second;
  const bool isKnown = held.last().origin.isKnown();
  if (isKnown && !origin.isKnown()) return false;
  bool mayGo =
      isKnown != origin.isKnown() || now - held.last().began > kGrace ||
      (most.first == origin.group ? held.count > own + 1 : most.second.count > ownGroup + 1);
  if (mayGo) displace(held.oldest);
  return mayGo;
}

void HandshakeServer::displace(Table::iterator at) {
  refuse(at, "it gave its place to another: too many handshakes at once");
}

HandshakeServer::Table::iterator HandshakeServer::refuse(Table::iterator at, const char* why) {
  outcomes_.push_back({at->first, std::nullopt, why});
  return forget(at);
}

// Forgets the oldest finished handshake, which only answers retransmissions.
void HandshakeServer::dropOldestDone() {
  auto oldest = handshakeServer_.end();
  for (auto it = handshakeServer_.begin(); it != handshakeServer_.end(); ++it) {
    if (it->second.done &&
        (oldest == handshakeServer_.end() || it->second.began < oldest->second.began))
      oldest = it;
  }
  if (oldest != handshakeServer_.end()) forget(oldest);
}

HandshakeServer::Table::iterator HandshakeServer::forget(Table::iterator at) {
  done_ -= at->second.done;
  return handshakeServer_.erase(at);
}

void HandshakeServer::forgetAll() {
  handshakeServer_.clear();
  done_ = 0;
  next_ = kNever;
  replies_.clear();
  outcomes_.clear();
}

void HandshakeServer::step(Time now) {
  next_ = kNever;
  for (auto it = handshakeServer_.begin(); it != handshakeServer_.end();) it = settle(it, now);
}

// Retransmits what is due, sends what there is to send, reports a handshake that has ended, and
// forgets one whose time is over. Returns the next handshake.
HandshakeServer::Table::iterator HandshakeServer::settle(Table::iterator at, Time now) {
  auto& [route, r] = *at;
  Handshake& handshake = *r.handshake;
  if (handshake.deadline() <= now) handshake.onTimer(now);
  bool isDone = !r.done && handshake.state() == Handshake::State::kDone;
  if (isDone && !limiter_.mayFinish(r.origin, route.remote.address, handshake.secrets().peer, now))
    return refuse(at, "its key has finished too many handshakes");
  drain(route, r);  // a failed handshake may have an alert to send
  bool failed = handshake.state() == Handshake::State::kFailed;
  bool closed = handshake.state() == Handshake::State::kClosed;
  if (failed || closed || now > r.end()) {
    if (!r.done && !closed)
      outcomes_.push_back({route, std::nullopt, std::string(handshake.error())});
    return forget(at);
  }
  if (isDone) {
    if (done_ == kMaxDone) dropOldestDone();
    r.done = true;
    r.patience.onAnswer(now - r.began, now);  // the initiator may miss the last flight
    ++done_;
    outcomes_.push_back({route, handshake.secrets(), {}});
    handshake.forgetSecrets();  // kept for retransmissions, which need no secrets
  }
  next_ = std::min({next_, handshake.deadline(), r.end() + 1ms});  // then `now > end()` is true
  return std::next(at);
}

void HandshakeServer::drain(const Route& route, Responder& responder) {
  while (replies_.size() < kMaxReplies) {
    Packet packet = pool_.allocate();
    if (!packet || !responder.handshake->pollDatagram(packet)) return;
    send(HandshakeKind::kResponder, responder.id, route, std::move(packet));
  }
}

void HandshakeServer::send(HandshakeKind kind, const HandshakeId& id, const Route& to,
                           Packet body) {
  HandshakeHeader header{kind, id, {}, {}};
  random_.fill(header.nonce);
  if (seal_.seal(header, body)) replies_.push_back({to, Ecn::kNotEct, std::move(body)});
}

bool HandshakeServer::pollDatagram(Datagram& out) {
  if (replies_.empty()) return false;
  out = std::move(replies_.front());
  replies_.pop_front();
  return true;
}

bool HandshakeServer::pollOutcome(Outcome& out) {
  if (outcomes_.empty()) return false;
  out = std::move(outcomes_.front());
  outcomes_.pop_front();
  return true;
}

}  // namespace braid
