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

/// fe80::/10 (RFC 4291 section 2.5.6).
bool isLinkLocal(const Address& a) {
  return a.isV6() && a.bytes[0] == 0xfe && (a.bytes[1] & 0xc0) == 0x80;
}

bool matches(const RecoveryClass& c, const InnerPacket& ip, const FlowKey& key) {
  auto inPorts = [&](uint16_t port) { return port >= c.firstPort && port <= c.lastPort; };
  return (!c.protocol || *c.protocol == key.protocol) && (!c.dscp || *c.dscp == ip.dscp) &&
         (inPorts(key.sport) || inPorts(key.dport));
}

PacketHint hintOf(const InnerPacket& ip, const FlowKey& key, const std::vector<RecoveryClass>& classes) {
  size_t count = std::min(classes.size(), kMaxRecoveryClasses);
  size_t i = 0;
  while (i < count && !matches(classes[i], ip, key)) ++i;
  uint8_t flags = ip.tcp ? ip.tcp->flags : uint8_t{0};
  return {static_cast<uint8_t>(i < count ? i + 1 : 0), (flags & TcpFields::kFin) != 0,
          (flags & TcpFields::kPsh) != 0};
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
      answers_(pool),
      ecnProxy_(random.next(), random.next()),
      shim_(pool, *this, {random.next(), random.next()}) {
  shim_.setUp(options_);
}

void Forwarder::onPeersChanged() {
  router_.clear();
  std::set<const Peer*> present;
  peers_.forEach([&](Peer& peer) {
    router_.add(peer);
    present.insert(&peer);
  });
  switch_.forgetPeers([&](const Peer& known) { return !present.contains(&known); });
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

void Forwarder::onInnerPacket(Packet packet, Time now) {
  // The last buffers are for what empties the queues: datagrams to send, acknowledgments that arrive.
  if (pool_.limit() - pool_.inUse() < pool_.limit() / kBufferReserve) return drop(Drop::kNoBuffer);
  if (options_.mode == TunnelOptions::Mode::kTun) return forwardIp(std::move(packet), now);
  std::optional<Frame> frame = parseFrame(packet.view());
  if (!frame) return drop(Drop::kBadInnerPacket);
  switch_.forget(frame->src);
  forwardFrame(std::move(packet), *frame, nullptr, now);
}

void Forwarder::forwardIp(Packet packet, Time now) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  if (!ip) return drop(Drop::kBadInnerPacket);
  packet.setSize(ip->size);
  if (Peer* peer = router_.peerFor(ip->dst)) return send(*peer, std::move(packet), &*ip, 0, now);
  drop(Drop::kNoPeer);
  toDevice(answers_.unreachable(packet.view(), *ip, 0, Unreachable::kNoRoute, now));
}

// To the peer behind which the destination was seen, or to all; never back to `except`.
void Forwarder::forwardFrame(Packet packet, const Frame& frame, const Peer* except, Time now) {
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (Peer* known = switch_.peerFor(frame, now)) {
    if (known != except) send(*known, std::move(packet), ip, frame.payloadOffset, now);
    return;
  }
  std::vector<Peer*> others;
  peers_.forEach([&](Peer& peer) {
    if (&peer != except) others.push_back(&peer);
  });
  if (others.empty()) return;
  Peer* last = others.back();
  others.pop_back();
  for (Peer* other : others) {
    Packet copy = pool_.copy(packet.view());
    if (!copy) return drop(Drop::kNoBuffer);
    send(*other, std::move(copy), ip, frame.payloadOffset, now);
  }
  send(*last, std::move(packet), ip, frame.payloadOffset, now);
}

void Forwarder::send(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Time now) {
  Session* session = peer.session();
  if (!session || !peer.isUp()) {
    drop(Drop::kPeerDown);
    if (ip) toDevice(answers_.unreachable(packet.view(), *ip, ipOffset, Unreachable::kHost, now));
    return;
  }
  bool fits = packet.size() <= session->innerMtu();
  if (!fits && !ip) return drop(Drop::kTooBig);
  // The shim sees what the tunnel takes, and a packet that is to be cut before it is cut: fragments are no
  // TCP segments to it.
  if (ip && (fits || !ip->dontFragment)) shim_.onFromHost(packet.view(), *ip, now);
  if (fits) return queue(peer, std::move(packet), ip, ipOffset, now);
  sendTooBig(peer, std::move(packet), *ip, ipOffset, now);
}

void Forwarder::sendTooBig(Peer& peer, Packet packet, const InnerPacket& ip, size_t ipOffset, Time now) {
  size_t mtu = peer.session()->innerMtu() - ipOffset;
  if (ip.dontFragment) {
    drop(Drop::kTooBig);
    return toDevice(answers_.tooBig(packet.view(), ip, ipOffset, mtu, now));
  }
  ByteView link = packet.view().first(ipOffset);
  ByteView whole = packet.view().subspan(ipOffset, ip.size);
  FragmentResult result = fragmentIpv4(pool_, whole, static_cast<uint16_t>(mtu), [&](Packet fragment) {
    std::optional<InnerPacket> part = parseInnerPacket(fragment.view());
    if (!link.empty()) std::copy(link.begin(), link.end(), fragment.prepend(link.size()));
    if (part) send(peer, std::move(fragment), &*part, ipOffset, now);
  });
  if (result != FragmentResult::kDone) drop(Drop::kTooBig);
}

// The peer has a session to send by, and the packet fits it.
void Forwarder::queue(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Time now) {
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
    if (options_.ecnProxy) ecnProxy_.onOutgoing(bytes, *ip, now);
    hint = hintOf(*ip, key, options_.recoveryClasses);
  }
  peers_.wake(peer);
  if (std::optional<Drop> cause =
          session.onInnerPacket(std::move(packet), key, reliable, ecnCapable, now, hint))
    drop(*cause);
}

// A local host's segment once more, made by the shim, which need not see it again. The first one went the same way:
// if that way is closed now, the host will find out by itself.
void Forwarder::resend(Packet packet, Time now) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  Peer* peer = ip ? router_.peerFor(ip->dst) : nullptr;
  if (!peer || !peer->isUp()) return;
  Session* session = peer->session();
  if (!session || packet.size() > session->innerMtu()) return;
  queue(*peer, std::move(packet), &*ip, 0, now);
}

void Forwarder::onTooLarge(const Peer& to, ByteView packet, Time now) {
  size_t offset = 0;
  std::optional<InnerPacket> ip;
  if (options_.mode == TunnelOptions::Mode::kTap) {
    std::optional<Frame> frame = parseFrame(packet);
    if (!frame) return;
    ip = frame->ip;
    offset = frame->payloadOffset;
  } else {
    ip = parseInnerPacket(packet);
  }
  const Session* session = to.session();
  if (ip && session) toDevice(answers_.tooBig(packet, *ip, offset, session->innerMtu() - offset, now));
}

// While there is no way to the peer, what is sent again would be lost as well.
bool Forwarder::isCarrying(const FlowKey& key) const {
  const Peer* peer = router_.peerFor(key.destination());
  if (!peer) return false;
  const Session* session = peer->session();
  return !session || !peer->isUp() || session->isCarrying(key);
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
  if (const Session* session = from.session()) clampSyn(packet.span(), *ip, session->innerMtu());
  if (options_.ecnProxy) ecnProxy_.onIncoming(packet.span(), *ip, now);
  if (shim_.onToHost(packet.view(), *ip, now)) toDevice(std::move(packet));
}

// A peer without prefixes may bridge what it likes; with prefixes its IP packets and ARP must come from them.
void Forwarder::deliverFrame(Peer& from, Packet packet, Time now) {
  std::optional<Frame> frame = parseFrame(packet.view());
  if (!frame) return drop(Drop::kBadInnerPacket);
  if (!from.options().prefixes.empty()) {
    if (isUnreadable(*frame)) return drop(Drop::kBadInnerPacket);
    std::optional<Address> source;
    if (frame->ip) source = frame->ip->src;
    if (frame->arp) source = frame->arp->sender;
    if (source && !ownsSource(from, *source)) return drop(Drop::kForeignSource);
  }
  switch_.learn(frame->src, from, now);
  if (frame->ip) {
    ByteSpan bytes = packet.span().subspan(frame->payloadOffset);
    if (const Session* session = from.session())
      clampSyn(bytes, *frame->ip, session->innerMtu() - frame->payloadOffset);
    if (options_.ecnProxy) ecnProxy_.onIncoming(bytes, *frame->ip, now);
  }
  if (switch_.peerFor(*frame, now)) return forwardFrame(std::move(packet), *frame, &from, now);
  if (peers_.size() > 1) {
    if (Packet copy = pool_.copy(packet.view())) forwardFrame(std::move(copy), *frame, &from, now);
  }
  toDevice(std::move(packet));
}

// Link-local addresses are every link's own, and only a bridge joins links.
bool Forwarder::ownsSource(const Peer& peer, const Address& source) const {
  if (isLinkLocal(source)) return options_.mode == TunnelOptions::Mode::kTap;
  return router_.peerFor(source) == &peer;
}

void Forwarder::toDevice(Packet packet) {
  if (packet) toDevice_.pushBack(std::move(packet));
}

}  // namespace braid
