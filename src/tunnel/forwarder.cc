#include "tunnel/forwarder.h"

#include <algorithm>
#include <set>
#include <vector>

#include "inet/fragment.h"
#include "inet/mss.h"
#include "inet/protocol.h"
#include "tunnel/peer_set.h"

namespace braid {

namespace {
/// One in so many buffers is not given to packets from the device. What peers keep leaves an eighth of the buffers
/// free (PacketPool): these are half of it. Ours.
constexpr size_t kBufferReserve = 16;

/// The frame says that it holds IP or ARP and does not, or hides what it holds behind many VLAN tags: its source
/// cannot be checked, and hosts may be less strict than our parser.
bool isUnreadable(const Frame& frame) {
  bool ip = frame.etherType == Frame::kIpV4 || frame.etherType == Frame::kIpV6;
  bool tagged = frame.etherType == Frame::kVlan || frame.etherType == Frame::kServiceVlan;
  return (ip && !frame.ip) || (frame.etherType == Frame::kArp && !frame.arp) || tagged;
}

/// The sender's address of a frame that crosses a bridge is one station's (IEEE 802.3 section 3.2.3).
bool isStation(const MacAddress& mac) {
  return !(mac[0] & 1) && mac != MacAddress{};
}

/// What a packet of neighbour discovery says of others than its source (RFC 4861): the address that an
/// advertisement gives a MAC address, or :: when the sender makes himself, or another one, a router.
std::optional<Address> claimOf(ByteView packet, const InnerPacket& ip) {
  constexpr uint8_t kRouterAdvertisement = 134, kNeighbourAdvertisement = 136, kRedirect = 137;
  constexpr size_t kTarget = 8, kAddress = 16;
  if (!ip.isV6() || ip.protocol != ip::kIcmpV6 || ip.isLaterFragment()) return std::nullopt;
  ByteView message = packet.subspan(ip.l4Offset, ip.l4Length);
  uint8_t type = message.empty() ? uint8_t{0} : message[0];
  Address anybody{Address::Family::kV6, {}};
  if (type == kRouterAdvertisement || type == kRedirect) return anybody;
  if (type != kNeighbourAdvertisement) return std::nullopt;
  return message.size() < kTarget + kAddress ? anybody : Address::v6(message.subspan(kTarget, kAddress));
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
    sign = *classes[i].delivery == Delivery::kOrdered ? DatagramSign::kOrdered : DatagramSign::kTimely;
  uint8_t flags = ip.tcp ? ip.tcp->flags : uint8_t{0};
  return {static_cast<uint8_t>(i < count ? i + 1 : 0), (flags & TcpFields::kFin) != 0,
          (flags & TcpFields::kPsh) != 0, sign};
}

/// No segment of this connection shall be larger than what fits the tunnel.
void clampSyn(ByteSpan packet, const InnerPacket& ip, size_t mtu) {
  if (ip.tcp && ip.tcp->isSyn()) clampMss(packet, ip, static_cast<uint16_t>(mtu));
}
}  // namespace

Forwarder::Forwarder(const TunnelOptions& options, PacketPool& pool, PeerSet& peers, SecretRandom& random)
    : options_(options),
      pool_(pool),
      peers_(peers),
      switch_(options.bridge, [](const Peer& peer) { return peer.isUp(); }),
      answers_(pool),
      ecnProxy_(random.next(), random.next()),
      shim_(pool, *this, {random.next(), random.next()}, FlowKeyHash(random.next(), random.next())) {
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

// Who names a part of a special range, or all of it, means it. A wider network does not.
void Forwarder::name(const Prefix& network) {
  std::optional<SpecialRange> range = special_.find(network.address);
  if (range && network.length >= range->length) named_.insert(network, network.length);
}

void Forwarder::onTimer(Time now) {
  if (!shim_.onTimer(now)) return;
  while (Packet packet = shim_.pollToHost()) toDevice(std::move(packet));
  while (Packet packet = shim_.pollToPeer()) resend(std::move(packet), now);
}

bool Forwarder::pollInnerPacket(Packet& out) {
  if (toDevice_.empty()) return false;
  out = std::move(toDevice_.front());
  toDevice_.popFront();
  return true;
}

// ---- from the device to a peer

// The last buffers are for what empties the queues: datagrams to send, acknowledgments that arrive.
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
    return send(*peer, std::move(packet), &*ip, 0, Asker::kLocalHost, now);
  drop(Drop::kNoPeer);
  toDevice(answers_.unreachable({packet.view(), *ip}, Unreachable::kNoRoute, now));
}

// To the peer behind which the destination is, or to all. What is for this side has reached it already.
void Forwarder::forwardFrame(Packet packet, const Frame& frame, Time now) {
  FrameSwitch::Way way = switch_.wayTo(frame, now);
  if (!way.known) return flood(std::move(packet), frame, nullptr, now);
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (way.peer) send(*way.peer, std::move(packet), ip, frame.payloadOffset, Asker::kLocalHost, now);
}

// To the device, to another peer, or to all but the one that it came from.
void Forwarder::bridgeFrame(Peer& from, Packet packet, const Frame& frame, Time now) {
  FrameSwitch::Way way = switch_.wayTo(frame, now);
  if (!way.known) return flood(std::move(packet), frame, &from, now);
  if (!way.peer) return toLan(std::move(packet), frame, now);
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (way.peer != &from) send(*way.peer, std::move(packet), ip, frame.payloadOffset, Asker::kNobody, now);
}

// One frame makes many. That has a bound for each that causes it, where there are several ways to go or the frame is
// for many hosts: neither a broken host nor a peer shall fill the others' lines. A frame to an address that nobody
// has heard of goes to the device in any case, which costs no more than it did to receive it.
void Forwarder::flood(Packet packet, const Frame& frame, Peer* from, Time now) {
  bool oneWay = peers_.size() <= 1 && !frame.isMulticast;
  if (!oneWay && !switch_.mayFlood(from, now)) {
    drop(Drop::kFloodLimit);
    if (from && !frame.isMulticast) toLan(std::move(packet), frame, now);
    return;
  }
  Peer* last = nullptr;
  peers_.forEach([&](Peer& peer) {
    if (&peer == from) return;
    if (last) sendCopy(*last, packet.view(), frame, now);
    last = &peer;
  });
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (last && from) sendCopy(*last, packet.view(), frame, now);
  if (from) return toLan(std::move(packet), frame, now);
  if (!last) return;
  Asker asker = oneWay ? Asker::kLocalHost : Asker::kNobody;
  send(*last, std::move(packet), ip, frame.payloadOffset, asker, now);
}

void Forwarder::sendCopy(Peer& peer, ByteView packet, const Frame& frame, Time now) {
  Packet copy = isShort() ? Packet{} : pool_.copy(packet);
  if (!copy) return drop(Drop::kNoBuffer);
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  send(peer, std::move(copy), ip, frame.payloadOffset, Asker::kNobody, now);
}

void Forwarder::send(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Asker asker,
                     Time now) {
  Session* session = peer.session();
  if (!session || !peer.isUp()) return wait(peer, std::move(packet), ip, ipOffset, asker, now);
  bool fits = packet.size() <= session->innerMtu();
  if (!fits && !session->knowsInnerMtu() && peer.waiting().isOpen(now))
    return wait(peer, std::move(packet), ip, ipOffset, asker, now);
  if (!fits && !ip) return drop(Drop::kTooBig);
  // The shim sees what the tunnel takes, and a packet that is to be cut before it is cut: fragments are no
  // TCP segments to it.
  if (ip && asker == Asker::kLocalHost && (fits || !ip->dontFragment))
    shim_.onFromHost(packet.view(), *ip, ipOffset, now);
  if (fits) return queue(peer, std::move(packet), ip, ipOffset, asker, now);
  sendTooBig(peer, std::move(packet), *ip, ipOffset, asker, now);
}

// The peer is not up, or not known to take such a large packet. It may be back soon, or the host is told.
void Forwarder::wait(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Asker asker,
                     Time now) {
  if (WaitingRoom& room = peer.waiting(); room.isOpen(now)) {
    peers_.wake(peer);
    return room.add({std::move(packet), asker});
  }
  drop(Drop::kPeerDown);
  if (ip && asker == Asker::kLocalHost)
    toDevice(answers_.unreachable({packet.view(), *ip, ipOffset, peer.place.peer}, Unreachable::kHost, now));
}

void Forwarder::onReturned(Peer& to, WaitingPacket waiting, Time now) {
  size_t offset = 0;
  std::optional<InnerPacket> ip = innerOf(waiting.packet.view(), offset);
  Peer* peer = &to;
  if (ip && !to.place.inUse) {  // another one of its group stands for it
    if (Peer* other = router_.peerFor(ip->flowKey())) peer = other;
  }
  send(*peer, std::move(waiting.packet), ip ? &*ip : nullptr, offset, waiting.asker, now);
}

void Forwarder::sendTooBig(Peer& peer, Packet packet, const InnerPacket& ip, size_t ipOffset, Asker asker,
                           Time now) {
  size_t mtu = peer.session()->innerMtu() - ipOffset;
  if (ip.dontFragment) {
    drop(Drop::kTooBig);
    if (asker == Asker::kNobody) return;
    return toDevice(answers_.tooBig({packet.view(), ip, ipOffset, peer.place.peer}, mtu, now));
  }
  ByteView link = packet.view().first(ipOffset);
  ByteView whole = packet.view().subspan(ipOffset, ip.size);
  FragmentResult result = fragmentIpv4(pool_, whole, static_cast<uint16_t>(mtu), [&](Packet fragment) {
    std::optional<InnerPacket> part = parseInnerPacket(fragment.view());
    if (!link.empty()) std::copy(link.begin(), link.end(), fragment.prepend(link.size()));
    if (part) send(peer, std::move(fragment), &*part, ipOffset, asker, now);
  });
  if (result != FragmentResult::kDone) drop(Drop::kTooBig);
}

// The peer has a session to send by, and the packet fits it.
void Forwarder::queue(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Asker asker,
                      Time now) {
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
    if (options_.ecnProxy && asker != Asker::kEndedSession) ecnProxy_.onOutgoing(bytes, *ip, now);
    hint = hintOf(*ip, bytes, key, options_.recoveryClasses);
  }
  peers_.wake(peer);
  if (std::optional<Drop> cause =
          session.onInnerPacket(std::move(packet), key, reliable, ecnCapable, now, hint))
    drop(*cause);
}

// A local host's segment once more, made by the shim, which need not see it again. The first one went the same way:
// if that way is closed now, the host will find out by itself.
void Forwarder::resend(Packet packet, Time now) {
  size_t offset = 0;
  std::optional<InnerPacket> ip = innerOf(packet.view(), offset);
  Peer* peer = ip ? peerOf(ip->flowKey()) : nullptr;
  if (!peer || !peer->isUp()) return;
  Session* session = peer->session();
  if (!session || packet.size() > session->innerMtu()) return;
  queue(*peer, std::move(packet), &*ip, offset, Asker::kLocalHost, now);
}

void Forwarder::onTooLarge(const Peer& to, ByteView packet, Time now) {
  size_t offset = 0;
  std::optional<InnerPacket> ip = innerOf(packet, offset);
  const Session* session = to.session();
  if (ip && session)
    toDevice(answers_.tooBig({packet, *ip, offset, to.place.peer}, session->innerMtu() - offset, now));
}

// nullopt when it is a frame that holds something else.
std::optional<InnerPacket> Forwarder::innerOf(ByteView packet, size_t& ipOffset) const {
  if (options_.mode != TunnelOptions::Mode::kTap) return parseInnerPacket(packet);
  std::optional<Frame> frame = parseFrame(packet);
  if (!frame) return std::nullopt;
  ipOffset = frame->payloadOffset;
  return frame->ip;
}

// The peer to which a local host's flow goes.
Peer* Forwarder::peerOf(const FlowKey& fromHost) const {
  if (options_.mode == TunnelOptions::Mode::kTun) return router_.peerFor(fromHost);
  std::optional<MacAddress> mac = shim_.nextHopOf(fromHost);
  return mac ? switch_.peerBehind(*mac) : nullptr;
}

// While there is no way to the peer, what is sent again would be lost as well.
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

void Forwarder::deliverIp(const Peer& from, Packet packet, Time now) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  if (!ip || ip->size != packet.size()) return drop(Drop::kBadInnerPacket);
  if (!ownsSource(from, ip->src)) return drop(Drop::kForeignSource);
  if (!mayReach(ip->dst)) return drop(Drop::kSpecialDestination);
  if (const Session* session = from.session()) clampSyn(packet.span(), *ip, session->innerMtu());
  if (options_.ecnProxy) ecnProxy_.onIncoming(packet.span(), *ip, now);
  if (shim_.onToHost(packet.view(), *ip, 0, now)) toDevice(std::move(packet));
}

void Forwarder::deliverFrame(Peer& from, Packet packet, Time now) {
  std::optional<Frame> frame = parseFrame(packet.view());
  if (!frame || !isStation(frame->src)) return drop(Drop::kBadInnerPacket);
  if (std::optional<Drop> cause = refusal(from, *frame, packet.view())) return drop(*cause);
  if (!switch_.admit(frame->src, &from, now)) return drop(Drop::kMacTaken);
  if (frame->ip) {
    ByteSpan bytes = packet.span().subspan(frame->payloadOffset);
    if (const Session* session = from.session())
      clampSyn(bytes, *frame->ip, session->innerMtu() - frame->payloadOffset);
    if (options_.ecnProxy) ecnProxy_.onIncoming(bytes, *frame->ip, now);
  }
  bridgeFrame(from, std::move(packet), *frame, now);
}

// Why the peer may not send this frame. What it says of IP addresses must be within its prefixes, if it has any, and
// is never about this side.
std::optional<Drop> Forwarder::refusal(const Peer& from, const Frame& frame, ByteView bytes) const {
  if (!switch_.carries(frame)) return Drop::kNotBridged;
  bool bound = !from.options().prefixes.empty();
  if (bound && isUnreadable(frame)) return Drop::kBadInnerPacket;
  auto mayClaim = [&](const Address& address) {
    return bound ? ownsSource(from, address) : !router_.isLocal(address);
  };
  if (frame.arp && !mayClaim(frame.arp->sender)) return Drop::kForeignSource;
  if (!frame.ip) return std::nullopt;
  std::optional<Address> claim = claimOf(bytes.subspan(frame.payloadOffset), *frame.ip);
  if (!mayClaim(frame.ip->src) || (claim && !mayClaim(*claim))) return Drop::kForeignSource;
  return mayReach(frame.ip->dst) ? std::nullopt : std::optional(Drop::kSpecialDestination);
}

// Link-local addresses are every link's own, and only a bridge joins links.
bool Forwarder::ownsSource(const Peer& peer, const Address& source) const {
  if (isLinkLocal(source) && !router_.isLocal(source)) return options_.mode == TunnelOptions::Mode::kTap;
  return router_.owns(peer, source);
}

// This host might take what is for a link or a cloud for its own, or pass it on in its own name (`nat`). A bridge joins
// links, and its multicast and link-local addresses are those of one network.
bool Forwarder::mayReach(const Address& destination) const {
  std::optional<SpecialRange> range = special_.find(destination);
  if (!range) return true;
  if (range->kind == SpecialKind::kNobody) return false;
  if (range->kind == SpecialKind::kLink && options_.mode == TunnelOptions::Mode::kTap) return true;
  return named_.find(destination).value_or(0) >= range->length;
}

// A frame of a peer.
void Forwarder::toLan(Packet packet, const Frame& frame, Time now) {
  if (!frame.ip || shim_.onToHost(packet.view(), *frame.ip, frame.payloadOffset, now))
    toDevice(std::move(packet));
}

void Forwarder::toDevice(Packet packet) {
  if (packet) toDevice_.pushBack(std::move(packet));
}

}  // namespace braid
