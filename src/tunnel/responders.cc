#include "tunnel/responders.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace braid {

Responders::Responders(PacketPool& pool, HandshakeProvider& handshakes, SecretRandom& random)
    : pool_(pool),
      handshakes_(handshakes),
      random_(random),
      seal_(HandshakeSeal::Side::kResponder, handshakes.ownPin()),
      door_(random.next()) {}

std::optional<Drop> Responders::onDatagram(const Route& from, ByteSpan bytes, Time now) {
  // The answer to a handshake of ours that is over.
  if (bytes.empty() || bytes[0] != static_cast<uint8_t>(HandshakeKind::kInitiator))
    return Drop::kHandshakeGarbage;
  auto opened = seal_.open(bytes);
  if (!opened) return Drop::kHandshakeSeal;
  const HandshakeHeader& header = opened->header;
  if (seen_.seen(header.nonce)) return Drop::kHandshakeReplay;  // who has overheard it gets nothing
  seen_.add(header.nonce);
  auto running = responders_.find(from);
  if (running != responders_.end() && running->second.id == header.id)
    return feed(running, opened->body, now);
  cookies_.rotate(now, [&](ByteSpan secret) { random_.fill(secret); });
  bool hasCookie = header.cookie != HandshakeCookie{};  // a flood of hellos without costs no hash
  if (!hasCookie || !cookies_.check(from.remote, header.cookie)) return ask(from, header, now);
  if (!isClientHello(opened->body)) return Drop::kHandshakeGarbage;
  return begin(from, header, opened->body, now);
}

std::optional<Drop> Responders::ask(const Route& from, const HandshakeHeader& header, Time now) {
  if (replies_.size() >= kMaxReplies || !door_.mayAsk(from.remote.address, now)) return Drop::kHandshakeLimit;
  Packet reply = pool_.allocate();
  if (!reply) return Drop::kNoBuffer;
  HandshakeCookie cookie = cookies_.make(from.remote);
  std::ranges::copy(cookie, reply.append(cookie.size()));
  send(HandshakeKind::kCookieRequest, header.id, from, std::move(reply));
  return std::nullopt;
}

// A new handshake on a route takes the place of the one before.
std::optional<Drop> Responders::begin(const Route& from, const HandshakeHeader& header, ByteView hello,
                                      Time now) {
  const Address& address = from.remote.address;
  auto before = responders_.find(from);
  bool hasPlace = before != responders_.end() && !before->second.done;
  if (!door_.mayBegin(address, now) || (!hasPlace && !makeRoomFor(Door::hostOf(address), now)))
    return Drop::kHandshakeLimit;
  if (before != responders_.end()) forget(before);
  Responder made{header.id, handshakes_.accept(now), now};
  return feed(responders_.emplace(from, std::move(made)).first, hello, now);
}

std::optional<Drop> Responders::feed(Table::iterator at, ByteView body, Time now) {
  Responder& responder = at->second;
  if (++responder.datagrams > kMaxDatagrams) return Drop::kHandshakeLimit;
  responder.handshake->onDatagram(body, now);
  settle(at, now);
  return std::nullopt;
}

// With all places taken, the oldest one of the host that holds most goes: a stranger with few addresses displaces
// himself. Friends go only for friends.
bool Responders::makeRoomFor(const Address& host, Time now) {
  struct Held {
    size_t count = 0;
    Table::iterator oldest;
  };
  std::map<Address, Held> hosts;
  for (auto it = responders_.begin(); it != responders_.end(); ++it) {
    if (it->second.done) continue;
    Held& held = hosts[Door::hostOf(it->first.remote.address)];
    if (held.count++ == 0 || it->second.began < held.oldest->second.began) held.oldest = it;
  }
  auto own = hosts.find(host);
  size_t ownCount = own == hosts.end() ? 0 : own->second.count;
  if (ownCount >= kMaxRunningPerHost) return displace(own->second.oldest), true;
  if (responders_.size() - done_ < kMaxRunning) return true;
  auto rank = [&](const auto& entry) {
    const auto& [address, held] = entry;
    return std::tuple(!door_.isFriend(address), held.count, -held.oldest->second.began.time_since_epoch());
  };
  const auto& [most, held] = *std::ranges::max_element(hosts, {}, rank);
  bool isFriend = door_.isFriend(host), goesBefore = isFriend && !door_.isFriend(most);
  if (door_.isFriend(most) && !isFriend) return false;
  bool mayGo = goesBefore || held.count > ownCount + 1 || now - held.oldest->second.began > kGrace;
  if (mayGo) displace(held.oldest);
  return mayGo;
}

void Responders::displace(Table::iterator at) {
  outcomes_.push_back({at->first, std::nullopt, "it gave its place to another: too many handshakes at once"});
  forget(at);
}

// A handshake that is done only answers retransmissions: the oldest of those makes room.
void Responders::dropOldestDone() {
  auto oldest = responders_.end();
  for (auto it = responders_.begin(); it != responders_.end(); ++it) {
    if (it->second.done && (oldest == responders_.end() || it->second.began < oldest->second.began))
      oldest = it;
  }
  if (oldest != responders_.end()) forget(oldest);
}

Responders::Table::iterator Responders::forget(Table::iterator at) {
  done_ -= at->second.done;
  return responders_.erase(at);
}

void Responders::step(Time now) {
  next_ = kNever;
  for (auto it = responders_.begin(); it != responders_.end();) it = settle(it, now);
}

// Retransmits what is due, sends what there is to send, reports a handshake that has ended, and forgets one whose time
// is over. Gives the one after it.
Responders::Table::iterator Responders::settle(Table::iterator at, Time now) {
  auto& [route, r] = *at;
  Handshake& handshake = *r.handshake;
  if (handshake.deadline() <= now) handshake.onTimer(now);
  drain(route, r);  // a failed one may have an alert to send
  bool failed = handshake.state() == Handshake::State::kFailed;
  bool closed = handshake.state() == Handshake::State::kClosed;
  if (failed || closed || now > r.end()) {
    if (!r.done && !closed) outcomes_.push_back({route, std::nullopt, std::string(handshake.error())});
    return forget(at);
  }
  next_ = std::min({next_, handshake.deadline(), r.end() + 1ms});  // when `now > end()` will hold
  if (!r.done && handshake.state() == Handshake::State::kDone) {
    if (done_ == kMaxDone) dropOldestDone();
    r.done = true;
    ++done_;
    door_.addFriend(route.remote.address);
    outcomes_.push_back({route, handshake.secrets(), {}});
    handshake.forgetSecrets();  // it stays for retransmissions, the secrets need not
  }
  return std::next(at);
}

void Responders::drain(const Route& route, Responder& responder) {
  while (replies_.size() < kMaxReplies) {
    Packet packet = pool_.allocate();
    if (!packet || !responder.handshake->pollDatagram(packet)) return;
    send(HandshakeKind::kResponder, responder.id, route, std::move(packet));
  }
}

void Responders::send(HandshakeKind kind, const HandshakeId& id, const Route& to, Packet body) {
  HandshakeHeader header{kind, id, {}, {}};
  random_.fill(header.nonce);
  if (seal_.seal(header, body)) replies_.push_back({to, Ecn::kNotEct, std::move(body)});
}

bool Responders::pollDatagram(Datagram& out) {
  if (replies_.empty()) return false;
  out = std::move(replies_.front());
  replies_.pop_front();
  return true;
}

bool Responders::pollOutcome(Outcome& out) {
  if (outcomes_.empty()) return false;
  out = std::move(outcomes_.front());
  outcomes_.pop_front();
  return true;
}

}  // namespace braid
