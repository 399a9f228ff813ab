// The way of inner packets between the device and the sessions: routing by prefix (TUN) or MAC address (TAP),
// source checks, MSS clamping, "too big" and "unreachable".

#include <algorithm>

#include "inet/fragment.h"
#include "inet/icmp.h"
#include "inet/mss.h"
#include "inet/protocol.h"
#include "tunnel/peer.h"
#include "tunnel/tunnel.h"

namespace braid {

namespace {
/// ICMP errors per second and at once (RFC 1812 section 4.3.2.8).
constexpr double kAnswerRate = 100;
constexpr double kAnswerBurst = 50;
/// MAC addresses learnt from peers; a stranger beyond it is reached by flooding.
constexpr size_t kMaxMacs = 4096;
/// A MAC address not seen for so long is forgotten (IEEE 802.1D: 300 s).
constexpr Duration kMacAge = 300s;
/// Pause between searches of a full table for old ones: made-up addresses must not cost a search each. Ours.
constexpr Duration kMacSweep = 1s;
constexpr size_t kEthernetHeader = 14;
/// This part of the buffers is not given to packets from the device. Ours.
constexpr size_t kBufferReserve = 8;
constexpr uint8_t kTcp = ip::kTcp;

/// Says to hold IP or ARP, or hides what it holds behind many VLAN tags: its source cannot be checked, and
/// others may be less strict than our parser.
bool isUnreadable(const Frame& frame) {
  bool ip = frame.etherType == Frame::kIpV4 || frame.etherType == Frame::kIpV6;
  bool tagged = frame.etherType == Frame::kVlan || frame.etherType == Frame::kServiceVlan;
  return (ip && !frame.ip) || (frame.etherType == Frame::kArp && !frame.arp) || tagged;
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
}  // namespace

void Tunnel::onInnerPacket(Packet packet, Time now) {
  now = forward(now);
  // The last buffers are for what empties the queues: datagrams to send, acknowledgments that arrive.
  if (pool_.limit() - pool_.inUse() < pool_.limit() / kBufferReserve) return drop(Drop::kNoBuffer);
  if (options_.mode == TunnelOptions::Mode::kTap) return onInnerFrame(std::move(packet), now);
  onInnerIp(std::move(packet), now);
}

void Tunnel::onInnerIp(Packet packet, Time now) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  if (!ip) return drop(Drop::kBadInnerPacket);
  packet.setSize(ip->size);
  std::optional<size_t> index = prefixes_.find(ip->dst);
  if (!index) {
    drop(Drop::kNoPeer);
    if (mayAnswer(now))
      answer(buildUnreachable(pool_, packet.view(), answerFrom(*ip), Unreachable::kNoRoute), {}, 0);
    return;
  }
  send(*peers_[*index], std::move(packet), &*ip, 0, now);
}

// A frame goes to the peer behind which its destination was seen, or to all.
void Tunnel::onInnerFrame(Packet packet, Time now) {
  std::optional<Frame> frame = parseFrame(packet.view());
  if (!frame) return drop(Drop::kBadInnerPacket);
  macs_.erase(frame->src);  // it may have moved here
  forwardFrame(std::move(packet), *frame, nullptr, now);
}

// Behind whom its destination was seen of late.
Peer* Tunnel::peerOf(const Frame& frame, Time now) const {
  auto known = frame.isMulticast ? macs_.end() : macs_.find(frame.dst);
  return known != macs_.end() && now - known->second.seen < kMacAge ? known->second.peer : nullptr;
}

void Tunnel::forwardFrame(Packet packet, const Frame& frame, const Peer* except, Time now) {
  const InnerPacket* ip = frame.ip ? &*frame.ip : nullptr;
  if (Peer* known = peerOf(frame, now)) {
    if (known != except) send(*known, std::move(packet), ip, frame.payloadOffset, now);
    return;
  }
  std::vector<Peer*> others;
  for (auto& peer : peers_) {
    if (peer.get() != except) others.push_back(peer.get());
  }
  for (size_t i = 0; i < others.size(); ++i) {
    bool last = i + 1 == others.size();
    Packet copy = last ? std::move(packet) : pool_.copy(packet.view());
    if (!copy) return drop(Drop::kNoBuffer);
    send(*others[i], std::move(copy), ip, frame.payloadOffset, now);
  }
}

void Tunnel::send(Peer& peer, Packet packet, const InnerPacket* ip, size_t ipOffset, Time now) {
  Session* session = peer.session();
  if (!session || !peer.isUp()) {
    drop(Drop::kPeerDown);
    if (ip && mayAnswer(now)) {
      ByteView offender = packet.view().subspan(ipOffset);
      answer(buildUnreachable(pool_, offender, answerFrom(*ip), Unreachable::kHost), packet.view(), ipOffset);
    }
    return;
  }
  if (packet.size() <= session->innerMtu()) {
    if (shim_ && ip) shim_->onFromHost(packet.view(), *ip, now);
    return queue(*session, std::move(packet), ip, ipOffset, now);
  }
  if (!ip) return drop(Drop::kTooBig);
  // Its fragments are no TCP segments to the shim, and yet the tunnel takes it.
  if (shim_ && !ip->dontFragment) shim_->onFromHost(packet.view(), *ip, now);
  tooBig(peer, std::move(packet), *ip, ipOffset, now);
}

void Tunnel::queue(Session& session, Packet packet, const InnerPacket* ip, size_t ipOffset, Time now) {
  FlowKey key{};
  bool reliable = false;
  bool ecnCapable = false;
  PacketHint hint;
  if (ip) {
    key = ip->flowKey();
    reliable = ip->protocol == kTcp && !ip->isFragment;
    ecnCapable = ip->ecn != Ecn::kNotEct;
    ByteSpan bytes = packet.span().subspan(ipOffset);
    if (ip->tcp && ip->tcp->isSyn())
      clampMss(bytes, *ip, static_cast<uint16_t>(session.innerMtu() - ipOffset));
    if (options_.ecnProxy) ecnProxy_.onOutgoing(bytes, *ip, now);
    hint = hintOf(*ip, key, options_.recoveryClasses);
  }
  if (std::optional<Drop> cause =
          session.onInnerPacket(std::move(packet), key, reliable, ecnCapable, now, hint))
    drop(*cause);
}

void Tunnel::tooBig(Peer& peer, Packet packet, const InnerPacket& ip, size_t ipOffset, Time now) {
  auto mtu = static_cast<uint16_t>(peer.session()->innerMtu() - ipOffset);
  ByteView offender = packet.view().subspan(ipOffset, ip.size);
  if (ip.dontFragment) {
    drop(Drop::kTooBig);
    if (mayAnswer(now)) answer(buildTooBig(pool_, offender, answerFrom(ip), mtu), packet.view(), ipOffset);
    return;
  }
  ByteView link = packet.view().first(ipOffset);
  FragmentResult result = fragmentIpv4(pool_, offender, mtu, [&](Packet fragment) {
    std::optional<InnerPacket> part = parseInnerPacket(fragment.view());
    if (!link.empty()) std::copy(link.begin(), link.end(), fragment.prepend(link.size()));
    if (part) send(peer, std::move(fragment), &*part, ipOffset, now);
  });
  if (result != FragmentResult::kDone) drop(Drop::kTooBig);
}

void Tunnel::onTooLarge(Peer& to, ByteView packet) {
  size_t offset = 0;
  std::optional<InnerPacket> ip;
  if (options_.mode == TunnelOptions::Mode::kTap) {
    std::optional<Frame> frame = parseFrame(packet);
    if (!frame || !frame->ip) return;
    ip = frame->ip;
    offset = frame->payloadOffset;
  } else {
    ip = parseInnerPacket(packet);
  }
  const Session* session = to.session();
  if (!ip || !session || !mayAnswer(now_)) return;
  auto mtu = static_cast<uint16_t>(session->innerMtu() - offset);
  answer(buildTooBig(pool_, packet.subspan(offset), answerFrom(*ip), mtu), packet, offset);
}

Address Tunnel::answerFrom(const InnerPacket& offender) const {
  const Address& own = offender.isV4() ? own4_ : own6_;
  return own.family == Address::Family::kNone ? offender.dst : own;
}

// `offender` is the whole frame of a TAP device: its MAC addresses and VLAN tags are turned round for the
// answer.
void Tunnel::answer(Packet packet, ByteView offender, size_t ipOffset) {
  if (!packet) return;
  if (ipOffset >= kEthernetHeader) {
    uint8_t* header = packet.prepend(ipOffset);
    std::copy_n(offender.begin() + 6, 6, header);
    std::copy_n(offender.begin(), 6, header + 6);
    std::copy_n(offender.begin() + 12, ipOffset - 12, header + 12);
  }
  delivered_.pushBack(std::move(packet));
}

bool Tunnel::mayAnswer(Time now) {
  if (answersAt_ == Time::min())
    answerTokens_ = kAnswerBurst;
  else
    answerTokens_ = std::min(kAnswerBurst, answerTokens_ + toSeconds(now - answersAt_) * kAnswerRate);
  answersAt_ = now;
  if (answerTokens_ < 1) return false;
  answerTokens_ -= 1;
  return true;
}

// ---- from a peer to the device

void Tunnel::onDelivered(Peer& from, Packet packet) {
  if (options_.mode == TunnelOptions::Mode::kTap) return deliverFrame(from, std::move(packet));
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  if (!ip || ip->size != packet.size()) return drop(Drop::kBadInnerPacket);
  if (!ownsSource(from, ip->src)) return drop(Drop::kForeignSource);
  const Session* session = from.session();
  if (session && ip->tcp && ip->tcp->isSyn()) {
    clampMss(packet.span(), *ip, static_cast<uint16_t>(session->innerMtu()));
  }
  if (options_.ecnProxy) ecnProxy_.onIncoming(packet.span(), *ip, now_);
  // What was changed since it was parsed, the shim does not look at there.
  if (shim_ && shim_->onToHost(packet.view(), *ip, now_) == AckShim::Verdict::kDrop) return;
  delivered_.pushBack(std::move(packet));
}

// A peer without prefixes may bridge what it likes; with prefixes its IP packets and ARP must come from them.
void Tunnel::deliverFrame(Peer& from, Packet packet) {
  std::optional<Frame> frame = parseFrame(packet.view());
  if (!frame) return drop(Drop::kBadInnerPacket);
  if (!from.options().prefixes.empty()) {
    if (isUnreadable(*frame)) return drop(Drop::kBadInnerPacket);
    std::optional<Address> source;
    if (frame->ip) source = frame->ip->src;
    if (frame->arp) source = frame->arp->sender;
    if (source && !ownsSource(from, *source)) return drop(Drop::kForeignSource);
  }
  learn(frame->src, from);
  const Session* session = from.session();
  if (session && frame->ip && frame->ip->tcp && frame->ip->tcp->isSyn()) {
    auto mtu = static_cast<uint16_t>(session->innerMtu() - frame->payloadOffset);
    clampMss(packet.span().subspan(frame->payloadOffset), *frame->ip, mtu);
  }
  if (options_.ecnProxy && frame->ip) {
    ecnProxy_.onIncoming(packet.span().subspan(frame->payloadOffset), *frame->ip, now_);
  }
  if (peerOf(*frame, now_)) return forwardFrame(std::move(packet), *frame, &from, now_);
  if (peers_.size() > 1) {
    if (Packet copy = pool_.copy(packet.view())) forwardFrame(std::move(copy), *frame, &from, now_);
  }
  delivered_.pushBack(std::move(packet));
}

bool Tunnel::ownsSource(const Peer& peer, const Address& source) const {
  if (source.isV6() && source.bytes[0] == 0xfe && (source.bytes[1] & 0xc0) == 0x80) {
    return options_.mode == TunnelOptions::Mode::kTap;  // link-local
  }
  std::optional<size_t> index = prefixes_.find(source);
  return index && peers_[*index].get() == &peer;
}

void Tunnel::learn(const MacAddress& mac, Peer& peer) {
  if (mac[0] & 1) return;
  auto found = macs_.find(mac);
  if (found != macs_.end()) {
    found->second = {&peer, now_};
    return;
  }
  if (macs_.size() >= kMaxMacs && now_ >= nextSweep_) {
    nextSweep_ = now_ + kMacSweep;
    std::erase_if(macs_, [&](const auto& entry) { return now_ - entry.second.seen >= kMacAge; });
  }
  if (macs_.size() < kMaxMacs) macs_[mac] = {&peer, now_};
}

}  // namespace braid
