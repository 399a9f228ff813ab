#include "tunnel/forward/forwarder.h"

#include <algorithm>
#include <set>
#include <vector>

#include "inet/icmp.h"
#include "inet/ip.h"
#include "inet/tcp.h"
#include "tunnel/peer/peer_set.h"

namespace braid {

namespace {
/// 1/kBufferReserve of the buffers is not given to packets from the device. Queued, sent and held
/// packets leave 1/8 of the buffers free (PacketPool); this is half of that.
constexpr size_t kBufferReserve = 16;
/// Errors of routers that are in no prefix of their peer. Chosen: some programs that trace their
/// way with 30 hops at once.
constexpr RateLimit kRouterErrors{200, 10ms};

/// Whether the frame claims to hold IP or ARP and does not, or hides what it holds behind many VLAN
/// tags. Its source cannot be checked then, and hosts may be less strict than our parser.
bool isUnreadable(const Frame& frame) {
  bool ip = frame.etherType == Frame::kIpV4 || frame.etherType == Frame::kIpV6;
  bool tagged = frame.etherType == Frame::kVlan || frame.etherType == Frame::kServiceVlan;
  return (ip && !frame.ip) || (frame.etherType == Frame::kArp && !frame.arp) || tagged;
}

/// The source address of a frame that crosses a bridge must be that of one station (IEEE 802.3
/// section 3.2.3).
bool isStation(const MacAddress& mac) {
  return !(mac[0] & 1) && mac != MacAddress{};
}

/// The address that a neighbour discovery packet (RFC 4861) makes a claim about, apart from its
/// source. That is the target of an advertisement, whose MAC address it announces; or :: if the
/// packet makes its sender, or another host, a router.
std::optional<Address> claimOf(ByteView packet, const InnerPacket& ip) {
  constexpr uint8_t kRouterAdvertisement = 134, kNeighbourAdvertisement = 136, kRedirect = 137;
  constexpr size_t kTarget = 8, kAddress = 16;
  if (!ip.isV6() || ip.protocol != ip::kIcmpV6 || ip.isLaterFragment()) return std::nullopt;
  ByteView message = packet.subspan(ip.l4Offset, ip.l4Length);
  uint8_t type = message.empty() ? uint8_t{0} : message[0];
  Address anybody{Address::Family::kV6, {}};
  if (type == kRouterAdvertisement || type == kRedirect) return anybody;
  if (type != kNeighbourAdvertisement) return std::nullopt;
  return message.size() < kTarget + kAddress ? anybody
                                             : Address::v6(message.subspan(kTarget, kAddress));
}

/// fe80::/10 (RFC 4291 section 2.5.6).
bool isLinkLocal(const Address& a) {
  return a.isV6() && a.bytes[0] == 0xfe && (a.bytes[1] & 0xc0) == 0x80;
}

bool matches(const RecoveryClass& c, const InnerPacket& ip, const FlowKey& key) {
  auto inPorts = [&](uint16_t port) { return port >= c.firstPort && port <= c.lastPort; };
  return (!c.protocol || *c.protocol == key.protocol) && (!c.dscp || *c.dscp == ip.dscp) &&
         (inPorts(key.sport) || inPorts(key.dport));
}

PacketHint hintOf(const InnerPacket& ip, ByteView packet, const FlowKey& key,
                  const std::vector<RecoveryClass>& classes) {
  size_t count = std::min(classes.size(), kMaxRecoveryClasses);
  size_t i = 0;
  while (i < count && !matches(classes[i], ip, key)) ++i;
  DatagramSign sign = ip.protocol == ip::kTcp ? DatagramSign::kNone : datagramSign(ip, packet);
  if (i < count && classes[i].delivery)
    sign =
        *classes[i].delivery == Delivery::kOrdered ? DatagramSign::kOrdered : DatagramSign::kTimely;
  uint8_t flags = ip.tcp ? ip.tcp->flags : uint8_t{0};
  return {static_cast<uint8_t>(i < count ? i + 1 : 0), (flags & TcpFields::kFin) != 0,
          (flags & TcpFields::kPsh) != 0, sign};
}

/// Lowers the MSS option of a SYN, so that the segments of this connection fit the tunnel.
void clampSyn(ByteSpan packet, const InnerPacket& ip, size_t mtu) {
  if (ip.tcp && ip.tcp->isSyn()) clampMss(packet, ip, static_cast<uint16_t>(mtu));
}
}  // namespace

Forwarder::Forwarder(const TunnelOptions& options, PacketPool& pool, PeerSet& peers,
                     SecretRandom& random)
    : options_(options),
      pool_(pool),
      peers_(peers),
      switch_(options.bridge, [](const Peer& peer) { return peer.isUp(); }),
      answers_(pool),
      ecnProxy_(random.next(), random.next()),
      shim_(pool, *this, {random.next(), random.next()},
            FlowKeyHash(random.next(), random.next())) {
  shim_.setUp(options_);
}

void Forwarder::setLocalNetworks(std::vector<Prefix> networks) {
  local_ = std::move(networks);
  routePeers();
}

void Forwarder::onPeersChanged() {
  routePeers();
  std::set<const Peer*> present;
  peers_.forEach([&](Peer& peer) { present.insert(&peer); });
  switch_.forgetPeers([&](const Peer& known) { return !present.contains(&known); });
}

void Forwarder::routePeers() {
  router_.clear();
  named_.clear();
  for (const Prefix& network : local_) {
    router_.addLocal(network);
    name(network);
  }
  peers_.forEach([&](Peer& peer) {
    router_.add(peer);
    for (const Prefix& prefix : peer.options().prefixes) name(prefix);
  });
}

// A network that lies in a special range, or equals it, permits that part of the range. A wider
// network does not.
void Forwarder::name(const Prefix& network) {
  std::optional<SpecialRange> range = special_.find(network.address);
  if (range && network.length >= range->length) named_.insert(network, network.length);
}

void Forwarder::onEvent(PacketEvent event, Time now) {
  switch (event.kind) {
    case PacketEvent::Kind::kDelivered:
      return onDelivered(*event.peer, std::move(event.packet), now);
    case PacketEvent::Kind::kTooLarge:
      return onTooLarge(*event.peer, event.packet.view(), now);
    case PacketEvent::Kind::kDropped:
      return shim_.onDropped(event.packet.view(), now);
    case PacketEvent::Kind::kReturned:
      return onReturned(*event.peer, std::move(event.packet), event.origin, now);
  }
}

void Forwarder::onTimer(Time now) {
  if (!shim_.onTimer(now)) return;
  while (Packet packet = shim_.pollToHost()) toDevice(std::move(packet));
  while (Packet packet = shim_.pollToPeer()) resend(std::move(packet), now);
}

bool Forwarder::pollInnerPacket(Packet& out) {
  if (toDevice_.empty()) return false;
  out = toDevice_.takeFront();
  return true;
}

// ---- from the device to a peer

// The last buffers are kept for what empties the queues: datagrams to send, and ACKs that arrive.
bool Forwarder::isShort() const {
  return pool_.limit() - pool_.inUse() < pool_.limit() / kBufferReserve;
}

void Forwarder::onInnerPacket(Packet packet, Time now) {
  if (isShort()) return drop(Drop::kNoBuffer);
  if (options_.mode == TunnelOptions::Mode::kTun) return forwardIp(std::move(packet), now);
  std::optional<Frame> frame = parseFrame(packet.view());
  if (!frame || !isStation(frame->src)) return drop(Drop::kBadInnerPacket);
  if (!switch_.carries(*frame)) return drop(Drop::kNotBridged);
  switch_.admit(frame->src, nullptr, now);
  forwardFrame(std::move(packet), *frame, now);
}

void Forwarder::forwardIp(Packet packet, Time now) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  if (!ip) return drop(Drop::kBadInnerPacket);
  packet.setSize(ip->size);
  if (Peer* peer = router_.peerFor(ip->flowKey()))
    return send(*peer, std::move(packet), &*ip, 0, PacketOrigin::kLocalHost, now);
  drop(Drop::kNoPeer);
  toDevice(answers_.unreachable({packet.view(), *ip}, Unreachable::kNoRoute, now));
}

// Sends the frame to the peer behind which its destination is, or to all. A frame for this side has
// reached its destination already.
void Forwarder::forwardFrame(Packet packet, const Frame& frame, Time now) {
  LearningBridge::Way way = switch_.wayTo(frame, now);
  if (!way.known) return flood(std::move(packet), frame, nullptr, now);
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (way.peer)
    send(*way.peer, std::move(packet), ip, frame.payloadOffset, PacketOrigin::kLocalHost, now);
}

// Sends the frame to the device, to another peer, or to all ports except the one it came from.
void Forwarder::bridgeFrame(Peer& from, Packet packet, const Frame& frame, Time now) {
  LearningBridge::Way way = switch_.wayTo(frame, now);
  if (!way.known) return flood(std::move(packet), frame, &from, now);
  if (!way.peer) return toLan(std::move(packet), frame, now);
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (!mayCross(from, *way.peer)) return forbidCrossing(from, packet, ip, frame.payloadOffset, now);
  if (way.peer != &from)
    send(*way.peer, std::move(packet), ip, frame.payloadOffset, PacketOrigin::kNobody, now);
}

// Flooding turns one frame into many. It is rate-limited per port if several ports may get the
// frame or it is a multicast, so that neither a broken host nor a peer can fill the others' lines.
// A peer's frame to an unknown unicast address is always passed to the device, because that costs
// no more than it cost to receive the frame. The device is the only other port for it if peers do
// not reach each other (a bridge has no groups of peers).
void Forwarder::flood(Packet packet, const Frame& frame, Peer* from, Time now) {
  bool onePort = peers_.size() <= 1 || (from && !options_.betweenPeers);
  bool oneWay = onePort && !frame.isMulticast;
  if (!oneWay && !switch_.mayFlood(from, now)) {
    drop(Drop::kFloodLimit);
    if (from && !frame.isMulticast) toLan(std::move(packet), frame, now);
    return;
  }
  Peer* last = nullptr;
  peers_.forEach([&](Peer& peer) {
    if (&peer == from || (from && !mayCross(*from, peer))) return;
    if (last) sendCopy(*last, packet.view(), frame, now);
    last = &peer;
  });
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (last && from) sendCopy(*last, packet.view(), frame, now);
  if (from) return toLan(std::move(packet), frame, now);
  if (!last) return;
  PacketOrigin origin = oneWay ? PacketOrigin::kLocalHost : PacketOrigin::kNobody;
  send(*last, std::move(packet), ip, frame.payloadOffset, origin, now);
}

void Forwarder::sendCopy(Peer& peer, ByteView packet, const Frame& frame, Time now) {
  Packet copy = isShort() ? Packet{} : pool_.copy(packet);
  if (!copy) return drop(Drop::kNoBuffer);
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  send(peer, std::move(copy), ip, frame.payloadOffset, PacketOrigin::kNobody, now);
}

void Forwarder::send(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset,
                     PacketOrigin origin, Time now) {
  Session* session = peer.session();
  if (!session || !peer.isUp()) return wait(peer, std::move(packet), ip, ipOffset, origin, now);
  bool fits = packet.size() <= session->innerMtu();
  if (!fits && !session->knowsInnerMtu() && peer.staged().isOpen(now))
    return wait(peer, std::move(packet), ip, ipOffset, origin, now);
  if (!fits && !ip) return drop(Drop::kTooBig);
  // The shim sees every packet that the tunnel accepts. A packet to be fragmented is shown to it
  // before that, because the shim does not take fragments for TCP segments.
  if (ip && origin == PacketOrigin::kLocalHost && (fits || !ip->dontFragment))
    shim_.onFromHost(packet.view(), *ip, ipOffset, now);
  if (fits) return queue(peer, std::move(packet), ip, ipOffset, origin, now);
  sendTooBig(peer, std::move(packet), *ip, ipOffset, origin, now);
}

// The peer is not up, or not known to accept such a large packet. The packet is staged if the peer
// may be back soon; otherwise its host gets an ICMP error.
void Forwarder::wait(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset,
                     PacketOrigin origin, Time now) {
  if (StagedPackets& room = peer.staged(); room.isOpen(now)) {
    peers_.wake(peer);
    return room.add({std::move(packet), origin});
  }
  drop(Drop::kPeerDown);
  if (ip && origin == PacketOrigin::kLocalHost)
    toDevice(answers_.unreachable({packet.view(), *ip, ipOffset, peer.position}, Unreachable::kHost,
                                  now));
}

void Forwarder::onReturned(Peer& to, Packet packet, PacketOrigin origin, Time now) {
  size_t offset = 0;
  std::optional<InnerPacket> ip = innerOf(packet.view(), offset);
  Peer* peer = &to;
  if (ip && !to.inUse) {  // another peer of its group is in use
    if (Peer* other = router_.peerFor(ip->flowKey())) peer = other;
  }
  send(*peer, std::move(packet), ip ? &*ip : nullptr, offset, origin, now);
}

void Forwarder::sendTooBig(Peer& peer, Packet packet, const InnerPacket& ip, size_t ipOffset,
                           PacketOrigin origin, Time now) {
  size_t mtu = peer.session()->innerMtu() - ipOffset;
  if (ip.dontFragment) {
    drop(Drop::kTooBig);
    if (origin == PacketOrigin::kNobody) return;
    return toDevice(answers_.tooBig({packet.view(), ip, ipOffset, peer.position}, mtu, now));
  }
  ByteView link = packet.view().first(ipOffset);
  ByteView whole = packet.view().subspan(ipOffset, ip.size);
  FragmentResult result =
      fragmentIpv4(pool_, whole, static_cast<uint16_t>(mtu), [&](Packet fragment) {
        std::optional<InnerPacket> part = parseInnerPacket(fragment.view());
        if (!link.empty()) std::copy(link.begin(), link.end(), fragment.prepend(link.size()));
        if (part) send(peer, std::move(fragment), &*part, ipOffset, origin, now);
      });
  if (result != FragmentResult::kDone) drop(Drop::kTooBig);
}

// Queues the packet. The peer has a session that carries data, and the packet fits it.
void Forwarder::queue(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset,
                      PacketOrigin origin, Time now) {
  Session& session = *peer.session();
  FlowKey key{};
  bool reliable = false;
  bool ecnCapable = false;
  PacketHint hint;
  if (ip) {
    key = ip->flowKey();
    reliable = ip->protocol == ip::kTcp && !ip->isFragment;
    ecnCapable = ip->ecn != Ecn::kNotEct;
    ByteSpan bytes = packet.span().subspan(ipOffset);
    clampSyn(bytes, *ip, session.innerMtu() - ipOffset);
    if (options_.ecnProxy && origin != PacketOrigin::kEndedSession)
      ecnProxy_.onOutgoing(bytes, *ip, now);
    hint = hintOf(*ip, bytes, key, options_.recoveryClasses);
  }
  peers_.wake(peer);
  if (std::optional<Drop> cause =
          session.onInnerPacket(std::move(packet), key, reliable, ecnCapable, now, hint))
    drop(*cause);
}

// Sends a local host's segment once more. The shim made it, so it need not see it. The first one
// was sent the same way: if that way is closed now, the host will find out by itself.
void Forwarder::resend(Packet packet, Time now) {
  size_t offset = 0;
  std::optional<InnerPacket> ip = innerOf(packet.view(), offset);
  Peer* peer = ip ? peerOf(ip->flowKey()) : nullptr;
  if (!peer || !peer->isUp()) return;
  Session* session = peer->session();
  if (!session || packet.size() > session->innerMtu()) return;
  queue(*peer, std::move(packet), &*ip, offset, PacketOrigin::kLocalHost, now);
}

void Forwarder::onTooLarge(const Peer& to, ByteView packet, Time now) {
  size_t offset = 0;
  std::optional<InnerPacket> ip = innerOf(packet, offset);
  const Session* session = to.session();
  if (ip && session)
    toDevice(
        answers_.tooBig({packet, *ip, offset, to.position}, session->innerMtu() - offset, now));
}

// nullopt for a frame that holds something else than IP.
std::optional<InnerPacket> Forwarder::innerOf(ByteView packet, size_t& ipOffset) const {
  if (options_.mode != TunnelOptions::Mode::kTap) return parseInnerPacket(packet);
  std::optional<Frame> frame = parseFrame(packet);
  if (!frame) return std::nullopt;
  ipOffset = frame->payloadOffset;
  return frame->ip;
}

// The peer to which a local host's flow is sent.
Peer* Forwarder::peerOf(const FlowKey& fromHost) const {
  if (options_.mode == TunnelOptions::Mode::kTun) return router_.peerFor(fromHost);
  std::optional<MacAddress> mac = shim_.nextHopOf(fromHost);
  return mac ? switch_.peerBehind(*mac) : nullptr;
}

// True while the peer is not up: a packet that the shim resent would be lost, too.
bool Forwarder::isCarrying(const FlowKey& key) const {
  const Peer* peer = peerOf(key);
  if (!peer) return false;
  const Session* session = peer->session();
  if (!session || !peer->isUp()) return true;
  const Flow* flow = session->flow(key);
  return flow && flow->isCarried();
}

// ---- from a peer to the device

void Forwarder::onDelivered(Peer& from, Packet packet, Time now) {
  if (options_.mode == TunnelOptions::Mode::kTap) return deliverFrame(from, std::move(packet), now);
  deliverIp(from, std::move(packet), now);
}

void Forwarder::deliverIp(Peer& from, Packet packet, Time now) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  if (!ip || ip->size != packet.size()) return drop(Drop::kBadInnerPacket);
  if (!ownsSource(from, ip->src) && !isRouterError(from, packet.view(), *ip, now))
    return refuseSource(from, packet, *ip, now);
  if (!mayReach(ip->dst)) return drop(Drop::kSpecialDestination);
  if (!mayCross(from, ip->dst)) return forbidCrossing(from, packet, &*ip, 0, now);
  if (const Session* session = from.session()) clampSyn(packet.span(), *ip, session->innerMtu());
  if (options_.ecnProxy) ecnProxy_.onIncoming(packet.span(), *ip, now);
  if (shim_.onToHost(packet.view(), *ip, 0, now)) toDevice(std::move(packet));
}

void Forwarder::deliverFrame(Peer& from, Packet packet, Time now) {
  std::optional<Frame> frame = parseFrame(packet.view());
  if (!frame || !isStation(frame->src)) return drop(Drop::kBadInnerPacket);
  if (std::optional<Drop> cause = refusal(from, *frame, packet.view(), now)) return drop(*cause);
  if (!switch_.admit(frame->src, &from, now)) return drop(Drop::kMacTaken);
  if (frame->ip) {
    ByteSpan bytes = packet.span().subspan(frame->payloadOffset);
    if (const Session* session = from.session())
      clampSyn(bytes, *frame->ip, session->innerMtu() - frame->payloadOffset);
    if (options_.ecnProxy) ecnProxy_.onIncoming(bytes, *frame->ip, now);
  }
  bridgeFrame(from, std::move(packet), *frame, now);
}

// Why the peer may not send this frame. The IP addresses that it claims must be within its
// prefixes, if it has any, and must not belong to this side.
std::optional<Drop> Forwarder::refusal(Peer& from, const Frame& frame, ByteView bytes,
                                       Time now) const {
  if (!switch_.carries(frame)) return Drop::kNotBridged;
  bool bound = !from.options().prefixes.empty();
  if (bound && isUnreadable(frame)) return Drop::kBadInnerPacket;
  auto mayClaim = [&](const Address& address) {
    return bound ? ownsSource(from, address) : !router_.isLocal(address);
  };
  if (frame.arp && !mayClaim(frame.arp->sender)) return Drop::kForeignSource;
  if (!frame.ip) return std::nullopt;
  ByteView packet = bytes.subspan(frame.payloadOffset);
  std::optional<Address> claim = claimOf(packet, *frame.ip);
  if (claim && !mayClaim(*claim)) return Drop::kForeignSource;
  if (!mayClaim(frame.ip->src) && !isRouterError(from, packet, *frame.ip, now))
    return Drop::kForeignSource;
  return mayReach(frame.ip->dst) ? std::nullopt : std::optional(Drop::kSpecialDestination);
}

// Whether the packet is an error of a router on the way to a host behind the peer, which may have
// any address of the other side: without these errors there are black holes. It must quote a packet
// of a flow that this side has sent to that host.
bool Forwarder::isRouterError(Peer& from, ByteView packet, const InnerPacket& ip, Time now) const {
  if (router_.isLocal(ip.src) || special_.find(ip.src)) return false;
  std::optional<FlowKey> flow = flowOfRouterError(packet, ip);
  const Session* session = from.session();
  return flow && session && router_.owns(from, flow->destination()) && session->flow(*flow) &&
         from.routerErrors.take(kRouterErrors, now);
}

// Every link has its own link-local addresses, and only a bridge joins links.
bool Forwarder::ownsSource(const Peer& peer, const Address& source) const {
  if (isLinkLocal(source) && !router_.isLocal(source))
    return options_.mode == TunnelOptions::Mode::kTap;
  return router_.owns(peer, source);
}

// This host might take a packet to a special address (of a link or a cloud) for its own, or forward
// it under its own address (`nat`). A bridge joins links, so that their multicast and link-local
// addresses belong to one network.
bool Forwarder::mayReach(const Address& destination) const {
  std::optional<SpecialRange> range = special_.find(destination);
  if (!range) return true;
  if (range->kind == SpecialKind::kNobody) return false;
  if (range->kind == SpecialKind::kLink && options_.mode == TunnelOptions::Mode::kTap) return true;
  return named_.find(destination).value_or(0) >= range->length;
}

// The host's own routes would send such a packet back into the device. So it is stopped here, where
// the peer that sent it is known.
bool Forwarder::mayCross(const Peer& from, const Address& destination) const {
  if (options_.betweenPeers || peers_.size() <= 1) return true;
  const Peer* to = router_.peerFor(destination);
  return !to || mayCross(from, *to);
}

bool Forwarder::mayCross(const Peer& from, const Peer& to) const {
  const std::string& group = from.options().group;
  return options_.betweenPeers || &from == &to || (!group.empty() && group == to.options().group);
}

// Drops the peer's packet, and tells its sender.
void Forwarder::forbidCrossing(Peer& from, const Packet& packet, const InnerPacket* ip,
                               size_t ipOffset, Time now) {
  drop(Drop::kBetweenPeers);
  if (ip)
    answerPeer(from, {packet.view(), *ip, ipOffset, from.position, &from.icmpErrors},
               Unreachable::kProhibited, now);
}

// A host behind the peer uses an address that nobody gave to the peer: a public IPv6 address of its
// LAN, say. If it is told so, it tries IPv4 at once. This side's own addresses are forged.
void Forwarder::refuseSource(Peer& from, const Packet& packet, const InnerPacket& ip, Time now) {
  drop(Drop::kForeignSource);
  if (router_.isLocal(ip.src) || special_.find(ip.src) || !mayReach(ip.dst)) return;
  answerPeer(from, {packet.view(), ip, 0, from.position, &from.icmpErrors}, Unreachable::kSource,
             now);
}

// Sends the peer an ICMP error about a packet that came from it.
void Forwarder::answerPeer(Peer& from, const IcmpErrors::Offender& offender, Unreachable why,
                           Time now) {
  Packet answer = answers_.unreachable(offender, why, now);
  if (!answer) return;
  size_t offset = 0;
  std::optional<InnerPacket> error = innerOf(answer.view(), offset);
  if (error) send(from, std::move(answer), &*error, offset, PacketOrigin::kNobody, now);
}

// Passes a peer's frame to the device, if the shim permits.
void Forwarder::toLan(Packet packet, const Frame& frame, Time now) {
  if (!frame.ip || shim_.onToHost(packet.view(), *frame.ip, frame.payloadOffset, now))
    toDevice(std::move(packet));
}

void Forwarder::toDevice(Packet packet) {
  if (packet) toDevice_.pushBack(std::move(packet));
}

}  // namespace braid
