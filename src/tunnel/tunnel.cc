#include "tunnel/tunnel.h"

#include <algorithm>

#include "tunnel/forward/forwarder.h"
#include "tunnel/peer/peer.h"
#include "tunnel/peer/peer_set.h"
#include "tunnel/stream/session_streams.h"
#include "tunnel/stream/stream.h"

namespace braid {

void TunnelStreams::wakePeers() {
  registry_.takeTouched([&](uint32_t session) { peers_.wakeSession(session); });
}

// The session with the peer behind the destination; nullptr: none.
Session* TunnelStreams::sessionFor(const Address& destination) const {
  if (options_.mode != TunnelOptions::Mode::kTun) return nullptr;
  Peer* peer = forwarder_.peerBehind(destination);
  return peer ? peer->session() : nullptr;
}

bool TunnelStreams::canOpen(const Address& destination) const {
  Session* session = sessionFor(destination);
  return session && session->anyUsable() && session->streams().mayTakeOver();
}

StreamHandle TunnelStreams::open(const StreamEnds& ends, Time now) {
  if (ends.source.address.family != ends.destination.address.family) return {};
  Session* session = sessionFor(ends.destination.address);
  return session ? session->streams().open(ends, now) : StreamHandle{};
}

const StreamEnds* TunnelStreams::ends(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s ? &s->ends() : nullptr;
}

size_t TunnelStreams::writable(StreamHandle stream, size_t wanted) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sending().writable(*s, wanted) : 0;
}

size_t TunnelStreams::room(StreamHandle stream, std::span<ByteSpan> buffers) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sending().room(*s, buffers) : 0;
}

void TunnelStreams::commit(StreamHandle stream, size_t bytes, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().sending().commit(*s, bytes, now);
}

size_t TunnelStreams::write(StreamHandle stream, ByteView bytes, Time now) {
  Stream* s = registry_.find(stream);
  return s ? s->of().sending().write(*s, bytes, now) : 0;
}

void TunnelStreams::finish(StreamHandle stream, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().sending().finish(*s, now);
}

void TunnelStreams::reset(StreamHandle stream, StreamCause cause, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().reset(*s, cause, now);
}

size_t TunnelStreams::readable(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s ? s->assembly().readable() : 0;
}

size_t TunnelStreams::peek(StreamHandle stream, std::span<ByteView> views) const {
  const Stream* s = registry_.find(stream);
  return s ? s->assembly().peek(views) : 0;
}

void TunnelStreams::consume(StreamHandle stream, size_t bytes, Time now) {
  if (Stream* s = registry_.find(stream)) s->of().consume(*s, bytes, now);
}

bool TunnelStreams::isAtEnd(StreamHandle stream) const {
  const Stream* s = registry_.find(stream);
  return s && s->assembly().isAtEnd();
}

// A peer may open streams only between addresses between which it may also send packets.
bool TunnelStreams::isAllowed(const Stream& stream) const {
  const Peer* peer = peers_.peerOf(stream.of().session());
  return peer && forwarder_.ownsSource(*peer, stream.ends().source.address) &&
         forwarder_.mayReach(stream.ends().destination.address);
}

bool TunnelStreams::pollStream(StreamEvent& out) {
  while (registry_.poll(out)) {
    Stream* stream = out.opened ? registry_.find(out.stream) : nullptr;
    if (!stream || isAllowed(*stream)) return true;
    stream->of().reset(*stream, StreamCause::kForbidden, stream->begun());
  }
  return false;
}

Tunnel::Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes,
               const RandomKey& key)
    : options_(std::move(options)),
      pool_(pool),
      handshakes_(handshakes),
      random_(key),
      streamMemory_(options_.streams.allHeldBytes),
      streams_(options_, peers_, forwarder_),
      uplinks_(options_.maxOuterMtu),
      peers_(options_, pool, handshakes, *this, events_),
      groups_(options_, peers_, events_),
      handshakeServer_(pool, handshakes, random_),
      forwarder_(options_, pool, peers_, random_) {
  shareMemory(options_);
}

void Tunnel::shareMemory(TunnelOptions& options) {
  options.orderMemory = &memory_;
  options.decodeMemory = &memory_;
  options.streams.memory = &streamMemory_;
  options.streams.registry = &streams_.registry();
}

// Ends the sessions while the objects they refer to still exist.
Tunnel::~Tunnel() {
  peers_.clear();
}

void Tunnel::setPeers(std::vector<PeerOptions> peers, Time now) {
  std::vector<Pin> pins;
  for (const PeerOptions& peer : peers) pins.push_back(peer.pin);
  auto gone = peers_.replace(std::move(peers), uplinks_.all(), random_, forward(now));
  groups_.onPeersChanged(now_);
  forwarder_.onPeersChanged();
  handshakes_.setAcceptedPins(std::move(pins));
}

void Tunnel::callBack(std::vector<KnownInitiator> callers, Time now) {
  std::set<Pin> waitedFor;
  peers_.forEach([&](const Peer& peer) {
    if (peer.options().endpoints.empty()) waitedFor.insert(peer.options().pin);
  });
  std::erase_if(callers,
                [&](const KnownInitiator& caller) { return !waitedFor.contains(caller.pin); });
  for (const KnownInitiator& caller : callers) {
    for (const Route& route : caller.routes) handshakeServer_.welcome(route.remote.address);
  }
  calls_.begin(std::move(callers), forward(now));
}

void Tunnel::setUplinks(std::vector<UplinkSpec> uplinks, Time now) {
  uplinks_.set(std::move(uplinks));
  peers_.setUplinks(uplinks_.all(), forward(now));
}

void Tunnel::resetMeter(std::string_view uplink, uint64_t used, Time now) {
  UplinkMeterEntry* account = uplinks_.find(uplink);
  if (!account || !account->meter) return;
  account->meter->reset(used);
  events_.push(
      {Event::Kind::kNewPeriod, {}, "uplink " + account->spec.name + ": a new period begins"});
  peers_.setUplinks(uplinks_.all(), forward(now));
}

// Counts a datagram, in either direction and from any sender, because the provider bills all of
// them. An uplink that reaches its cap counts as down.
void Tunnel::count(const Route& route, size_t bytes, Time now) {
  const UplinkMeterEntry* closed = uplinks_.count(route, bytes, now);
  if (!closed) return;
  const UplinkMeter& meter = *closed->meter;
  events_.push({Event::Kind::kCapReached,
                {},
                "uplink " + closed->spec.name +
                    " is not used any more in this period: " + std::to_string(meter.used()) +
                    " of " + std::to_string(meter.cap()) + " bytes are used, " +
                    std::to_string(meter.reserve()) + " kept for what is under way"});
  peers_.setUplinks(uplinks_.all(), now);
}

void Tunnel::setTunables(const TunnelOptions& options) {
  TunnelOptions next = options;
  next.mode = options_.mode;
  next.outerMtu = options_.outerMtu;
  next.maxOuterMtu = options_.maxOuterMtu;
  next.maxFlows = options_.maxFlows;
  next.decodeBuffer = options_.decodeBuffer;
  next.streams.firstUpload = options_.streams.firstUpload;
  next.streams.allHeldBytes = options_.streams.allHeldBytes;
  next.trace = options_.trace;
  shareMemory(next);
  next.shim.keepSizes(options_.shim);
  options_ = std::move(next);
  forwarder_.setTunables();
  peers_.setTunables();
}

void Tunnel::onInnerPacket(Packet packet, Time now) {
  now = forward(now);
  forwarder_.onInnerPacket(std::move(packet), now);
}

void Tunnel::onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now) {
  now = forward(now);
  ByteView bytes = datagram.view();
  count(from, bytes.size(), now);
  if (isHandshakeDatagram(bytes)) return onHandshake(from, datagram.span(), now);
  if (isReturnCall(bytes)) {
    std::optional<RestartNotice> call = readReturnCall(bytes);
    if (!call || !peers_.onReturnCall(from, *call, now)) countDrop(drops_, Drop::kReturnCall);
    return;
  }
  if (bytes.size() < kMinDatagram) return countDrop(drops_, Drop::kRuntDatagram);
  std::optional<DatagramHeader> header = readHeader(bytes);
  if (!header) return countDrop(drops_, Drop::kUnknownType);
  if (header->version != kWireVersion) return countDrop(drops_, Drop::kUnknownVersion);
  if (std::optional<Drop> cause = peers_.onDatagram(*header, from, ecn, std::move(datagram), now))
    countDrop(drops_, *cause);
}

void Tunnel::onHandshake(const Route& from, ByteSpan bytes, Time now) {
  if (peers_.onHandshakeDatagram(from, bytes, now)) return;
  if (std::optional<Drop> cause = handshakeServer_.onDatagram(from, bytes, now))
    countDrop(drops_, *cause);
  takeOutcomes(now);
}

// Takes the results of the handshakes that others began.
void Tunnel::takeOutcomes(Time now) {
  HandshakeServer::Outcome outcome;
  while (handshakeServer_.pollOutcome(outcome)) {
    if (outcome.secrets) {
      calls_.end(outcome.secrets->peer);
      peers_.onAccepted(*outcome.secrets, now);
    } else {
      events_.push({Event::Kind::kHandshakeFailed, outcome.route.remote.toString(),
                    std::move(outcome.error)});
    }
  }
}

void Tunnel::onTimer(Time now) {
  now = forward(now);
  peers_.onTimer(now);
  groups_.onTimer(now);
  forwarder_.onTimer(now);
  handshakeServer_.onTimer(now);
  takeOutcomes(now);
}

bool Tunnel::pollReply(Datagram& out, Time now) {
  return handshakeServer_.pollDatagram(out) || calls_.pollDatagram(pool_, out, now);
}

bool Tunnel::pollDatagram(Datagram& out, Time now) {
  now = forward(now);
  streams_.wakePeers();
  bool isReply = replyNext_ && pollReply(out, now);
  bool isPeers = !isReply && peers_.pollDatagram(out, now);
  if (!isReply && !isPeers) isReply = pollReply(out, now);
  replyNext_ = isPeers;
  if (isPeers) count(out.route, out.bytes.size(), now);
  return isReply || isPeers;
}

Time Tunnel::nextDeadline() const {
  if (streams_.registry().hasTouched()) return now_;
  return std::min({peers_.nextDeadline(now_), groups_.nextDeadline(), forwarder_.nextDeadline(),
                   handshakeServer_.nextDeadline(), calls_.nextDeadline()});
}

size_t Tunnel::innerMtu() const {
  size_t mtu = peers_.innerMtu();
  return mtu ? mtu : MtuDiscovery::kBaseDatagram - kDatagramOverhead;
}

std::vector<MeterStatus> Tunnel::meters() const {
  std::vector<MeterStatus> out;
  for (const UplinkMeterEntry& a : uplinks_.all()) {
    if (a.meter) out.push_back({a.meter->reading(), a.spec.name});
  }
  return out;
}

std::set<std::string> Tunnel::peersUp() const {
  std::set<std::string> out;
  peers_.forEach([&](const Peer& peer) {
    if (peer.isUp()) out.insert(peer.options().name);
  });
  return out;
}

std::vector<std::string> Tunnel::peerNames() const {
  std::vector<std::string> out;
  out.reserve(peers_.size());
  peers_.forEach([&](const Peer& peer) { out.push_back(peer.options().name); });
  return out;
}

std::vector<KnownInitiator> Tunnel::callers(Time now) const {
  std::vector<KnownInitiator> out;
  peers_.forEach([&](const Peer& peer) {
    if (std::optional<KnownInitiator> caller = peer.caller(now)) out.push_back(std::move(*caller));
  });
  return out;
}

TunnelStatus Tunnel::status(Time now, size_t flows) const {
  TunnelStatus s = wholeStatus();
  size_t share = flowShare(flows, peers_.size());
  peers_.forEach([&](const Peer& peer) { s.peers.push_back(peer.status(now, share)); });
  return s;
}

TunnelStatus Tunnel::wholeStatus() const {
  TunnelStatus s;
  s.drops = drops_;
  addDrops(s.drops, forwarder_.drops());
  addDrops(s.drops, peers_.drops());
  s.meters = meters();
  s.shim = forwarder_.shimStatus();
  s.buffersInUse = pool_.inUse();
  s.buffersLimit = pool_.limit();
  s.buffersQueued = pool_.budget(PacketUse::kQueued).used();
  s.buffersSent = pool_.budget(PacketUse::kSent).used();
  s.buffersHeld = pool_.budget(PacketUse::kHeld).used();
  s.memory = memory_.used();
  s.memoryLimit = memory_.limit();
  s.handshakes = handshakeServer_.size();
  return s;
}

}  // namespace braid
