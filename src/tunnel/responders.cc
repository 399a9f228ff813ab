#include "tunnel/responders.h"

#include <algorithm>

namespace braid {

namespace {
/// The same IPv4 address, or IPv6 addresses of one link (RFC 4291 section 2.5.4: 64 bits).
bool isSameHost(const Address& a, const Address& b) {
  if (a.family != b.family || !a.isV6()) return a == b;
  return std::equal(a.bytes.begin(), a.bytes.begin() + 8, b.bytes.begin());
}
}  // namespace

std::optional<Drop> Responders::onDatagram(const Route& from, ByteView bytes, Time now) {
  auto running = responders_.find(from);
  bool known = running != responders_.end();
  bool hello = isClientHello(bytes);
  if (known && !(hello && running->second.isStale(now))) {
    speak_ = true;
    running->second.handshake->onDatagram(bytes, now);
    step(now);
    return std::nullopt;
  }
  if (!hello) return Drop::kHandshakeGarbage;
  if (!known && !mayBegin(from.remote.address)) return Drop::kHandshakeLimit;
  Packet reply = pool_.allocate();
  if (!reply) return Drop::kNoBuffer;
  HelloAnswer answer = handshakes_.onHello(from.remote, bytes, reply, now);
  if (answer.accepted) {
    if (!known && responders_.size() >= kMaxResponders) dropOldestDone();
    speak_ = true;
    responders_.insert_or_assign(from, Responder{std::move(answer.accepted), now});
    step(now);
    return std::nullopt;
  }
  if (!answer.reply) return Drop::kHandshakeGarbage;
  if (replies_.size() >= kMaxReplies || reply.size() > bytes.size()) return Drop::kHandshakeLimit;
  replies_.push_back({from, Ecn::kNotEct, std::move(reply)});
  return std::nullopt;
}

bool Responders::mayBegin(const Address& host) const {
  size_t all = 0;
  size_t ofHost = 0;
  for (const auto& [route, r] : responders_) {
    if (r.done) continue;
    ++all;
    ofHost += isSameHost(route.remote.address, host);
  }
  return all < kMaxResponders && ofHost < kMaxRespondersPerHost;
}

// A handshake that is done only answers retransmissions: the oldest of those makes room.
void Responders::dropOldestDone() {
  auto oldest = responders_.end();
  for (auto it = responders_.begin(); it != responders_.end(); ++it) {
    if (it->second.done && (oldest == responders_.end() || it->second.began < oldest->second.began))
      oldest = it;
  }
  if (oldest != responders_.end()) responders_.erase(oldest);
}

// Retransmits what is due, reports handshakes that have ended, and forgets those whose time is over.
void Responders::step(Time now) {
  next_ = kNever;
  for (auto it = responders_.begin(); it != responders_.end();) {
    auto& [route, r] = *it;
    if (r.handshake->deadline() <= now) {
      speak_ = true;
      r.handshake->onTimer(now);
    }
    bool over = now > r.end() || r.handshake->state() == Handshake::State::kFailed;
    if (!r.done && r.handshake->state() == Handshake::State::kDone) {
      r.done = true;
      outcomes_.push_back({route, r.handshake->secrets(), {}});
    }
    if (!over) {
      next_ = std::min({next_, r.handshake->deadline(), r.end() + 1ms});  // when `now > end()` will hold
      ++it;
      continue;
    }
    if (!r.done) outcomes_.push_back({route, std::nullopt, std::string(r.handshake->error())});
    // A failed handshake may have an alert to send.
    for (Packet last = pool_.allocate(); last && r.handshake->pollDatagram(last); last = pool_.allocate()) {
      if (replies_.size() < kMaxReplies) replies_.push_back({route, Ecn::kNotEct, std::move(last)});
    }
    it = responders_.erase(it);
  }
}

bool Responders::pollDatagram(Datagram& out) {
  if (!replies_.empty()) {
    out = std::move(replies_.front());
    replies_.pop_front();
    return true;
  }
  if (!speak_) return false;
  for (auto& [route, r] : responders_) {
    Packet packet = pool_.allocate();
    if (!packet) return false;
    if (!r.handshake->pollDatagram(packet)) continue;
    out = {route, Ecn::kNotEct, std::move(packet)};
    return true;
  }
  speak_ = false;
  return false;
}

bool Responders::pollOutcome(Outcome& out) {
  if (outcomes_.empty()) return false;
  out = std::move(outcomes_.front());
  outcomes_.pop_front();
  return true;
}

}  // namespace braid
