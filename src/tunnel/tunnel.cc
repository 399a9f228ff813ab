#include "tunnel/tunnel.h"

#include <algorithm>

#include "tunnel/peer.h"

namespace braid {

namespace {
/// Handshakes of others at once; more are refused until some end.
constexpr size_t kMaxResponders = 256;
/// Of them, unfinished ones of one host, so that a stranger with a real address does not take them all.
constexpr size_t kMaxRespondersPerHost = 32;
/// A new hello from the same address is a duplicate while the handshake is younger than this; later the peer
/// has started anew.
constexpr Duration kStaleResponder = 3s;
constexpr Duration kStaleDoneResponder = 1s;
/// Stateless replies that wait for the driver.
constexpr size_t kMaxReplies = 256;
constexpr size_t kMaxEvents = 1024;

/// The same IPv4 address, or IPv6 addresses of one link (RFC 4291 section 2.5.4: 64 bits).
bool isSameHost(const Address& a, const Address& b) {
  if (a.family != b.family || !a.isV6()) return a == b;
  return std::equal(a.bytes.begin(), a.bytes.begin() + 8, b.bytes.begin());
}
}  // namespace

Tunnel::Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes, uint64_t seed)
    : options_(std::move(options)),
      pool_(pool),
      handshakes_(handshakes),
      random_(seed),
      uplinks_(options_.maxOuterMtu),
      ecnProxy_(random_.next(), random_.next()),
      shimSeed_(Random(~seed).next()) {
  setUpShim();
}

Tunnel::~Tunnel() {
  peers_.clear();
}

void Tunnel::setPeers(std::vector<PeerOptions> peers, Time now) {
  now = forward(now);
  std::vector<std::unique_ptr<Peer>> old = std::move(peers_);
  peers_.clear();
  prefixes_.clear();
  std::vector<Pin> pins;
  PeerOwner& owner = *this;
  for (PeerOptions& options : peers) {
    auto same = std::find_if(old.begin(), old.end(),
                             [&](const auto& p) { return p && p->options().pin == options.pin; });
    pins.push_back(options.pin);
    for (const Prefix& prefix : options.prefixes) prefixes_.insert(prefix, peers_.size());
    if (same != old.end()) {
      (*same)->setOptions(std::move(options), now);
      peers_.push_back(std::move(*same));
    } else {
      peers_.push_back(
          std::make_unique<Peer>(std::move(options), options_, pool_, handshakes_, owner, random_.fork()));
    }
    peers_.back()->setUplinks(uplinks_.all(), now);
  }
  std::erase_if(macs_, [&](const auto& entry) {
    return std::none_of(peers_.begin(), peers_.end(),
                        [&](const auto& p) { return p.get() == entry.second.peer; });
  });
  handshakes_.setAcceptedPins(std::move(pins));
}

void Tunnel::setUplinks(std::vector<UplinkSpec> uplinks, Time now) {
  uplinks_.set(std::move(uplinks));
  applyUplinks(forward(now));
}

void Tunnel::applyUplinks(Time now) {
  for (auto& peer : peers_) peer->setUplinks(uplinks_.all(), now);
}

void Tunnel::resetMeter(std::string_view uplink, uint64_t used, Time now) {
  UplinkAccount* account = uplinks_.find(uplink);
  if (!account || !account->meter) return;
  account->meter->reset(used);
  onEvent({Event::Kind::kNewPeriod, {}, "uplink " + account->spec.name + ": a new period begins"});
  applyUplinks(forward(now));
}

// What the provider bills, whoever sent it. At its cap an uplink counts as down.
void Tunnel::count(const Route& route, size_t bytes, Time now) {
  const UplinkAccount* closed = uplinks_.count(route, bytes, now);
  if (!closed) return;
  const UplinkMeter& meter = *closed->meter;
  onEvent({Event::Kind::kCapReached,
           {},
           "uplink " + closed->spec.name + " is not used any more in this period: " +
               std::to_string(meter.used()) + " of " + std::to_string(meter.cap()) + " bytes are used, " +
               std::to_string(meter.reserve()) + " kept for what is under way"});
  applyUplinks(now);
}

void Tunnel::setTunables(const TunnelOptions& options) {
  TunnelOptions next = options;
  next.mode = options_.mode;
  next.outerMtu = options_.outerMtu;
  next.maxOuterMtu = options_.maxOuterMtu;
  next.maxFlows = options_.maxFlows;
  next.decodeBuffer = options_.decodeBuffer;
  next.trace = options_.trace;
  next.shim.keepSizes(options_.shim);
  options_ = std::move(next);
  setUpShim();
  for (auto& peer : peers_) peer->setTunables();
}

void Tunnel::setOwnAddresses(const Address& v4, const Address& v6) {
  own4_ = v4;
  own6_ = v6;
}

void Tunnel::onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now) {
  now = forward(now);
  ByteView bytes = datagram.view();
  count(from, bytes.size(), now);
  if (isHandshakeDatagram(bytes)) return onHandshake(from, std::move(datagram), now);
  if (bytes.size() < kMinDatagram) return drop(Drop::kRuntDatagram);
  std::optional<DatagramHeader> header = readHeader(bytes);
  if (!header) return drop(Drop::kUnknownType);
  if (header->version != kWireVersion) return drop(Drop::kUnknownVersion);
  auto found = sessions_.find(header->session);
  if (found == sessions_.end()) return drop(Drop::kUnknownSession);
  auto [peer, session] = found->second;
  if (std::optional<Drop> cause = peer->onDatagram(*session, *header, from, ecn, std::move(datagram), now))
    drop(*cause);
}

void Tunnel::onHandshake(const Route& from, Packet datagram, Time now) {
  ByteView bytes = datagram.view();
  for (auto& peer : peers_) {
    if (peer->onHandshakeDatagram(from, bytes, now)) return;
  }
  auto running = responders_.find(from);
  bool hello = isClientHello(bytes);
  if (running != responders_.end()) {
    Responder& r = running->second;
    bool restarted = hello && now - r.began > (r.done ? kStaleDoneResponder : kStaleResponder);
    if (!restarted) {
      respondersSpeak_ = true;
      r.handshake->onDatagram(bytes, now);
      return stepResponders(now);
    }
  }
  if (!hello) return drop(Drop::kHandshakeGarbage);
  if (running == responders_.end() && !mayBegin(from.remote.address)) return drop(Drop::kHandshakeLimit);
  Packet reply = pool_.allocate();
  if (!reply) return drop(Drop::kNoBuffer);
  HelloAnswer answer = handshakes_.onHello(from.remote, bytes, reply, now);
  if (answer.accepted) {
    if (running == responders_.end() && responders_.size() >= kMaxResponders) dropOldestDone();
    respondersSpeak_ = true;
    responders_.insert_or_assign(from, Responder{from, std::move(answer.accepted), now, false});
    return stepResponders(now);
  }
  if (!answer.reply) return drop(Drop::kHandshakeGarbage);
  if (replies_.size() >= kMaxReplies || reply.size() > bytes.size()) return drop(Drop::kHandshakeLimit);
  replies_.push_back({from, Ecn::kNotEct, false, std::move(reply)});
}

bool Tunnel::mayBegin(const Address& host) const {
  size_t all = 0;
  size_t ofHost = 0;
  for (const auto& [route, r] : responders_) {
    if (r.done) continue;
    ++all;
    ofHost += isSameHost(route.remote.address, host);
  }
  return all < kMaxResponders && ofHost < kMaxRespondersPerHost;
}

// One that is done only answers retransmissions: the oldest of them makes room.
void Tunnel::dropOldestDone() {
  auto oldest = responders_.end();
  for (auto it = responders_.begin(); it != responders_.end(); ++it) {
    if (it->second.done && (oldest == responders_.end() || it->second.began < oldest->second.began))
      oldest = it;
  }
  if (oldest != responders_.end()) responders_.erase(oldest);
}

void Tunnel::stepResponders(Time now) {
  for (auto it = responders_.begin(); it != responders_.end();) {
    Responder& r = it->second;
    if (r.handshake->deadline() <= now) {
      respondersSpeak_ = true;
      r.handshake->onTimer(now);
    }
    bool over = now - r.began > kHandshakeTimeout || r.handshake->state() == Handshake::State::kFailed;
    if (!r.done && r.handshake->state() == Handshake::State::kDone) {
      r.done = true;
      const SessionSecrets& secrets = r.handshake->secrets();
      auto peer = std::find_if(peers_.begin(), peers_.end(),
                               [&](const auto& p) { return p->options().pin == secrets.peer; });
      if (peer != peers_.end()) (*peer)->onAccepted(secrets, now);
    }
    if (over && !r.done) {
      onEvent({Event::Kind::kHandshakeFailed, r.route.remote.toString(), std::string(r.handshake->error())});
    }
    if (!over) {
      ++it;
      continue;
    }
    // A failed handshake may have an alert to send.
    for (Packet last = pool_.allocate(); last && r.handshake->pollDatagram(last); last = pool_.allocate()) {
      if (replies_.size() < kMaxReplies) replies_.push_back({r.route, Ecn::kNotEct, false, std::move(last)});
    }
    it = responders_.erase(it);
  }
}

void Tunnel::onTimer(Time now) {
  now = forward(now);
  for (auto& peer : peers_) peer->onTimer(now);
  onShimTimer(now);
  stepResponders(now);
}

void Tunnel::onSendError(const Route& route, Time now) {
  for (auto& peer : peers_) peer->forEachSession([&](Session& s) { s.onSendError(route, forward(now)); });
}

void Tunnel::onTooBig(const Route& route, size_t size, Time now) {
  for (auto& peer : peers_) peer->forEachSession([&](Session& s) { s.onTooBig(route, size, forward(now)); });
}

void Tunnel::close() {
  for (auto& peer : peers_) peer->close();
}

bool Tunnel::pollDatagram(Datagram& out, Time now) {
  now = forward(now);
  if (!replies_.empty()) {
    out = std::move(replies_.front());
    replies_.pop_front();
    return true;
  }
  if (respondersSpeak_ && pollResponders(out)) return true;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = *peers_[(turn_ + i) % peers_.size()];
    bool sent = peer.pollHandshake(out, now);
    peer.forEachSession([&](Session& s) { sent = sent || s.pollDatagram(out, now); });
    if (!sent) continue;
    turn_ = (turn_ + i + 1) % peers_.size();
    count(out.route, out.bytes.size(), now);
    return true;
  }
  return false;
}

bool Tunnel::pollResponders(Datagram& out) {
  for (auto& [route, r] : responders_) {
    Packet packet = pool_.allocate();
    if (!packet) return false;
    if (!r.handshake->pollDatagram(packet)) continue;
    out = {route, Ecn::kNotEct, false, std::move(packet)};
    return true;
  }
  respondersSpeak_ = false;
  return false;
}

bool Tunnel::pollInnerPacket(Packet& out) {
  if (delivered_.empty()) return false;
  out = std::move(delivered_.front());
  delivered_.popFront();
  return true;
}

bool Tunnel::pollEvent(Event& out) {
  if (events_.empty()) return false;
  out = std::move(events_.front());
  events_.pop_front();
  return true;
}

Time Tunnel::nextDeadline() const {
  Time next = shim_ ? shim_->nextDeadline() : kNever;
  for (const auto& peer : peers_) next = std::min(next, peer->nextDeadline(now_));
  for (const auto& [route, r] : responders_) {
    next = std::min({next, r.handshake->deadline(), r.began + kHandshakeTimeout + 1ms});
  }
  return next;
}

size_t Tunnel::innerMtu() const {
  size_t mtu = 0;
  for (const auto& peer : peers_) {
    if (const Session* s = peer->session()) mtu = mtu ? std::min(mtu, s->innerMtu()) : s->innerMtu();
  }
  return mtu ? mtu : MtuDiscovery::kBaseDatagram - kDatagramOverhead;
}

void Tunnel::onEvent(Event event) {
  if (events_.size() < kMaxEvents) events_.push_back(std::move(event));
}

bool Tunnel::addSession(Peer& peer, Session& session) {
  return sessions_.try_emplace(session.id(), SessionEntry{&peer, &session}).second;
}

std::vector<MeterStatus> Tunnel::meters() const {
  std::vector<MeterStatus> out;
  for (const UplinkAccount& a : uplinks_.all()) {
    if (a.meter) out.push_back({a.spec.name, a.meter->used(), a.meter->cap(), a.meter->closed()});
  }
  return out;
}

TunnelStatus Tunnel::status(Time now) const {
  TunnelStatus s;
  s.drops = drops_;
  s.meters = meters();
  for (const auto& peer : peers_) {
    s.peers.push_back(peer->status(now));
    peer->forEachSession([&](const Session& session) {
      DropCounts counts = session.drops();
      for (size_t i = 0; i < kDropCount; ++i) s.drops[i] += counts[i];
    });
  }
  if (shim_) s.shim = {true, shim_->counters(), shim_->flows(), shim_->cachedPackets()};
  s.buffersInUse = pool_.inUse();
  s.buffersLimit = pool_.limit();
  s.handshakes = responders_.size();
  return s;
}

}  // namespace braid
