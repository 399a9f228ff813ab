#include "tunnel/tunnel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tunnel/tunnel_parts.h"

namespace braid {

Tunnel::Parts::Parts(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes,
                     const RandomKey& key)
    : options_(std::move(options)),
      pool_(pool),
      handshakes_(handshakes),
      random_(key),
      streamMemory_(options_.streams.allHeldBytes),
      streams_(options_, peers_, forwarder_),
      shared_{.orderMemory = &memory_,
              .decodeMemory = &memory_,
              .streamMemory = &streamMemory_,
              .streams = &streams_.registry()},
      uplinks_(options_.maxOuterMtu),
      peers_(options_, pool, handshakes, events_, packets_, shared_),
      groups_(options_, peers_, events_),
      handshakeServer_(pool, handshakes, random_),
      forwarder_(options_, pool, peers_, random_) {}

Tunnel::Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes,
               const RandomKey& key)
    : parts_(std::make_unique<Parts>(std::move(options), pool, handshakes, key)) {}

Tunnel::~Tunnel() = default;

void Tunnel::setPeers(std::vector<PeerOptions> peers, Time now) {
  std::vector<Pin> pins;
  for (const PeerOptions& peer : peers) pins.push_back(peer.pin);
  auto gone = parts_->peers_.replace(std::move(peers), parts_->uplinks_.all(), parts_->random_,
                                     parts_->forward(now));
  parts_->settle();
  parts_->groups_.onPeersChanged(parts_->now_);
  parts_->settle();
  parts_->forwarder_.onPeersChanged();
  parts_->handshakeServer_.setPeers(pins);
  parts_->handshakes_.setAcceptedPins(std::move(pins));
}

void Tunnel::forgetKeys(const std::string& why, const RandomKey& key, Time now) {
  now = parts_->forward(now);
  parts_->random_.restart(key);
  parts_->handshakeServer_.forgetAll();
  std::vector<KnownInitiator> initiators;
  parts_->peers_.forEach([&](Peer& peer) {
    parts_->peers_.wake(peer);
    if (std::optional<KnownInitiator> known = peer.forgetKeys("gets new keys: " + why, now))
      initiators.push_back(std::move(*known));
    parts_->settle(peer);
  });
  parts_->restartNotices_.add(std::move(initiators), now);
}

void Tunnel::sendRestartNotices(std::vector<KnownInitiator> initiators, Time now) {
  std::set<Pin> waitedFor;
  parts_->peers_.forEach([&](const Peer& peer) {
    if (!peer.options().hasEndpoints()) waitedFor.insert(peer.options().pin);
  });
  std::erase_if(initiators, [&](const KnownInitiator& initiator) {
    return !waitedFor.contains(initiator.pin);
  });
  for (const KnownInitiator& initiator : initiators) {
    for (const Route& route : initiator.routes)
      parts_->handshakeServer_.welcome(route.remote.address, initiator.pin);
  }
  parts_->restartNotices_.begin(std::move(initiators), parts_->forward(now));
}

void Tunnel::setListening(bool on) {
  parts_->handshakeServer_.setListening(on);
}

void Tunnel::setUplinks(std::vector<UplinkSpec> uplinks, Time now) {
  parts_->uplinks_.set(std::move(uplinks));
  parts_->forward(now);
  parts_->shareUplinks();
}

void Tunnel::resetMeter(std::string_view uplink, uint64_t used, Time now) {
  UplinkMeterEntry* account = parts_->uplinks_.find(uplink);
  if (!account || !account->meter) return;
  account->meter->reset(used);
  parts_->events_.push(
      {Event::Kind::kNewPeriod, {}, "uplink " + account->spec.name + ": a new period begins"});
  parts_->forward(now);
  parts_->shareUplinks();
}

void Tunnel::Parts::shareUplinks() {
  peers_.setUplinks(uplinks_.all(), now_);
  settle();
}

// Counts a datagram, in either direction and from any sender, because the provider bills all of
// them. An uplink that reaches its cap counts as down.
void Tunnel::Parts::count(const Route& route, size_t bytes, Time now) {
  const UplinkMeterEntry* closed = uplinks_.count(route, bytes, now);
  if (!closed) return;
  const UplinkMeter& meter = *closed->meter;
  events_.push({Event::Kind::kCapReached,
                {},
                "uplink " + closed->spec.name +
                    " is not used any more in this period: " + std::to_string(meter.used()) +
                    " of " + std::to_string(meter.cap()) + " bytes are used, " +
                    std::to_string(meter.reserve()) + " kept for what is under way"});
  shareUplinks();
}

void Tunnel::setTunables(const TunnelOptions& options) {
  TunnelOptions next = options;
  next.mode = parts_->options_.mode;
  next.outerMtu = parts_->options_.outerMtu;
  next.maxOuterMtu = parts_->options_.maxOuterMtu;
  next.maxFlows = parts_->options_.maxFlows;
  next.decodeBuffer = parts_->options_.decodeBuffer;
  next.streams.firstUpload = parts_->options_.streams.firstUpload;
  next.streams.allHeldBytes = parts_->options_.streams.allHeldBytes;
  next.shim.keepSizes(parts_->options_.shim);
  parts_->options_ = std::move(next);
  parts_->forwarder_.setTunables();
  parts_->peers_.setTunables();
}

void Tunnel::setTrace(TraceSink* sink) {
  parts_->shared_.trace = sink;
}

void Tunnel::setLocalNetworks(std::vector<Prefix> networks) {
  parts_->forwarder_.setLocalNetworks(std::move(networks));
}

void Tunnel::onInnerPacket(Packet packet, Time now) {
  now = parts_->forward(now);
  parts_->forwarder_.onInnerPacket(std::move(packet), now);
  parts_->settle();
}

std::optional<Drop> Tunnel::onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now) {
  now = parts_->forward(now);
  ByteView bytes = datagram.view();
  parts_->count(from, bytes.size(), now);
  auto drop = [&](Drop cause) {
    countDrop(parts_->drops_, cause);
    return std::nullopt;
  };
  if (isHandshakeDatagram(bytes)) {
    parts_->onHandshake(from, datagram.span(), now);
    return std::nullopt;
  }
  if (isRestartNotice(bytes)) {
    std::optional<RestartNotice> notice = readRestartNotice(bytes);
    if (!notice || !parts_->peers_.onRestartNotice(from, *notice, now))
      countDrop(parts_->drops_, Drop::kRestartNotice);
    parts_->settle();
    return std::nullopt;
  }
  if (isKeyNotice(bytes)) {
    std::optional<KeyNotice> notice = readKeyNotice(bytes);
    if (!notice || !parts_->peers_.onKeyNotice(*notice, now))
      countDrop(parts_->drops_, Drop::kKeyNotice);
    parts_->settle();
    return std::nullopt;
  }
  if (bytes.size() < kMinDatagram) return drop(Drop::kRuntDatagram);
  std::optional<DatagramHeader> header = readHeader(bytes);
  if (!header) return drop(Drop::kUnknownType);
  if (header->version != kWireVersion) return drop(Drop::kUnknownVersion);
  auto [peer, session, notice] = parts_->peers_.find(header->session);
  if (!peer) return drop(Drop::kUnknownSession);
  parts_->peers_.wake(*peer);
  std::optional<Drop> cause =
      peer->onDatagram(*session, *header, from, ecn, std::move(datagram), now);
  if (cause) countDrop(parts_->drops_, *cause);
  parts_->settle(*peer);
  return cause;
}

void Tunnel::onSendError(const Datagram& refused, Time now) {
  now = parts_->forward(now);
  parts_->peers_.forSender(refused, [&](Peer& peer) {
    bool isOurs = peer.onSendError(refused.route, now);
    parts_->settle(peer);
    return isOurs;
  });
}

void Tunnel::onTooBig(const Datagram& refused, Time now) {
  now = parts_->forward(now);
  parts_->peers_.forSender(
      refused, [&](Peer& peer) { return peer.onTooBig(refused.route, refused.bytes.size(), now); });
}

// Handles what has happened to packets. That may cause more of it: a frame may be bridged to
// another peer.
void Tunnel::Parts::settle() {
  while (!packets_.empty()) forwarder_.onEvent(packets_.takeFront(), now_);
}

// A datagram of the peer has arrived, or the peer may have become usable or unusable.
void Tunnel::Parts::settle(const Peer& changed) {
  settle();
  groups_.onChange(changed, now_);
  settle();
}

void Tunnel::Parts::onHandshake(const Route& from, ByteSpan bytes, Time now) {
  if (peers_.onHandshakeDatagram(from, bytes, now)) return settle();
  if (std::optional<Drop> cause = handshakeServer_.onDatagram(from, bytes, now))
    countDrop(drops_, *cause);
  takeOutcomes(now);
}

// Takes the results of the handshakes that others began.
void Tunnel::Parts::takeOutcomes(Time now) {
  HandshakeServer::Outcome outcome;
  while (handshakeServer_.pollOutcome(outcome)) {
    if (outcome.secrets) {
      restartNotices_.end(outcome.secrets->peer);
      peers_.onAccepted(*outcome.secrets, now);
    } else {
      events_.push({Event::Kind::kHandshakeFailed, outcome.route.remote.toString(),
                    std::move(outcome.error)});
    }
  }
}

void Tunnel::onTimer(Time now) {
  now = parts_->forward(now);
  parts_->peers_.onTimer(
      now, [this] { parts_->settle(); }, [this](const Peer& peer) { parts_->settle(peer); });
  parts_->groups_.onTimer(now);
  parts_->settle();
  parts_->forwarder_.onTimer(now);
  parts_->settle();
  parts_->handshakeServer_.onTimer(now);
  parts_->takeOutcomes(now);
}

bool Tunnel::Parts::pollReply(Datagram& out, Time now) {
  return handshakeServer_.pollDatagram(out) || restartNotices_.pollDatagram(pool_, out, now);
}

bool Tunnel::pollDatagram(Datagram& out, Time now) {
  now = parts_->forward(now);
  parts_->streams_.wakePeers();
  bool isReply = parts_->replyNext_ && parts_->pollReply(out, now);
  bool isPeers = !isReply && parts_->peers_.pollDatagram(out, now);
  if (!isReply && !isPeers) isReply = parts_->pollReply(out, now);
  parts_->replyNext_ = isPeers;
  parts_->settle();
  if (isPeers) parts_->count(out.route, out.bytes.size(), now);
  return isReply || isPeers;
}

StreamApi& Tunnel::streams() {
  return parts_->streams_;
}

void Tunnel::close() {
  parts_->peers_.close();
}

bool Tunnel::pollInnerPacket(Packet& out) {
  return parts_->forwarder_.pollInnerPacket(out);
}

bool Tunnel::pollEvent(Event& out) {
  return parts_->events_.poll(out);
}

Time Tunnel::nextDeadline() const {
  if (parts_->streams_.registry().hasTouched()) return parts_->now_;
  return std::min({parts_->peers_.nextDeadline(parts_->now_), parts_->groups_.nextDeadline(),
                   parts_->forwarder_.nextDeadline(), parts_->handshakeServer_.nextDeadline(),
                   parts_->restartNotices_.nextDeadline()});
}

size_t Tunnel::innerMtu() const {
  size_t mtu = parts_->peers_.innerMtu();
  return mtu ? mtu : MtuDiscovery::kBaseDatagram - kDatagramOverhead;
}

std::vector<MeterStatus> Tunnel::meters() const {
  std::vector<MeterStatus> out;
  for (const UplinkMeterEntry& a : parts_->uplinks_.all()) {
    if (a.meter) out.push_back({a.meter->reading(), a.spec.name});
  }
  return out;
}

std::vector<UplinkBytes> Tunnel::carried() const {
  std::vector<UplinkBytes> out;
  for (const UplinkMeterEntry& a : parts_->uplinks_.all()) out.push_back({a.spec.name, a.carried});
  return out;
}

std::set<std::string> Tunnel::peersUp() const {
  std::set<std::string> out;
  parts_->peers_.forEach([&](const Peer& peer) {
    if (peer.isUp()) out.insert(peer.options().name);
  });
  return out;
}

bool Tunnel::answers() const {
  bool any = false;
  parts_->peers_.forEach([&](const Peer& peer) { any |= peer.isUsable(); });
  return any;
}

std::vector<std::string> Tunnel::peerNames() const {
  std::vector<std::string> out;
  out.reserve(parts_->peers_.size());
  parts_->peers_.forEach([&](const Peer& peer) { out.push_back(peer.options().name); });
  return out;
}

size_t Tunnel::peerCount() const {
  return parts_->peers_.size();
}

PeerStatus Tunnel::peerStatus(size_t position, Time now, size_t flows) const {
  return parts_->peers_.at(position).status(now, flows);
}

PeerLoadTest& Tunnel::loadTest() {
  return parts_->loadTest_;
}

std::vector<KnownInitiator> Tunnel::knownInitiators(Time now) const {
  std::vector<KnownInitiator> out;
  parts_->peers_.forEach([&](const Peer& peer) {
    if (std::optional<KnownInitiator> initiator = peer.knownInitiator(now))
      out.push_back(std::move(*initiator));
  });
  return out;
}

TunnelStatus Tunnel::status(Time now, size_t flows) const {
  TunnelStatus s = wholeStatus();
  size_t share = flowShare(flows, parts_->peers_.size());
  parts_->peers_.forEach([&](const Peer& peer) { s.peers.push_back(peer.status(now, share)); });
  return s;
}

TunnelStatus Tunnel::wholeStatus() const {
  TunnelStatus s;
  s.drops = parts_->drops_;
  addDrops(s.drops, parts_->forwarder_.drops());
  addDrops(s.drops, parts_->peers_.drops());
  s.meters = meters();
  s.shim = parts_->forwarder_.shimStatus();
  s.buffersInUse = parts_->pool_.inUse();
  s.buffersLimit = parts_->pool_.limit();
  s.buffersQueued = parts_->pool_.quota(PacketUse::kQueued).used();
  s.buffersSent = parts_->pool_.quota(PacketUse::kSent).used();
  s.buffersHeld = parts_->pool_.quota(PacketUse::kHeld).used();
  s.memory = parts_->memory_.used();
  s.memoryLimit = parts_->memory_.limit();
  s.handshakes = parts_->handshakeServer_.size();
  return s;
}

}  // namespace braid
