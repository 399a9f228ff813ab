#include "ackshim/ack_shim.h"

#include <algorithm>
#include <utility>

namespace braid {

AckShim::AckShim(const AckShimOptions& options, PacketPool& pool, const TunnelKnowledge* tunnel,
                 uint64_t seed)
    : pool_(pool),
      tunnel_(tunnel),
      random_(seed),
      table_(options.maxFlows, options.maxHalfOpen, random_.next()),
      wheel_(table_.capacity()),
      cache_(pool.payload(), options.cachePackets, options.cachePerFlow) {
  setOptions(options);
}

void AckShim::setOptions(const AckShimOptions& options) {
  options_ = options;
  options_.idle = std::min(options.idle, AckShimOptions::kMaxIdle);
}

Time AckShim::forward(Time now) {
  now_ = std::max(now_, now);
  stamp_ = Stamp::of(now_);
  return now_;
}

void AckShim::onFromHost(ByteView packet, const InnerPacket& parsed, Time now) {
  onPacket(packet, parsed, true, now);
}

AckShim::Verdict AckShim::onToHost(ByteView packet, const InnerPacket& parsed, Time now) {
  return onPacket(packet, parsed, false, now);
}

AckShim::Verdict AckShim::onPacket(ByteView packet, const InnerPacket& parsed, bool fromHost, Time now) {
  if (!parsed.tcp) return Verdict::kPass;
  forward(now);
  packet = packet.first(parsed.size);
  FlowKey key = fromHost ? parsed.flowKey() : parsed.flowKey().reversed();
  size_t hash = table_.hash(key);
  TcpSegment s = readSegment(packet, parsed);
  uint32_t i = table_.findProven(key, hash);
  // A SYN says that a new connection may begin: the old one stays until the other end agrees (RFC 5961
  // section 4.2). The same goes for what does not fit.
  if (i != FlowTable::kNone && !s.isSyn()) {
    wheel_.prefetch(i);
    const ShimFlow& flow = table_[i];
    const Half& data = fromHost ? flow.out : flow.in;
    const Half& acked = fromHost ? flow.in : flow.out;
    bool fits = data.mayCarry(s) && (s.isAck() ? acked.mayAcknowledge(s.ack) : s.isRst());
    if (fits) return onProven(i, packet, s, fromHost);
    ++counters_.foreign;
  }
  return onOpening(key, hash, packet, s, fromHost);
}

AckShim::Verdict AckShim::onProven(uint32_t i, ByteView packet, const TcpSegment& s, bool fromHost) {
  ShimFlow& flow = table_[i];
  flow.lastUse = stamp_;
  if (s.isRst()) {
    onReset(i, s, fromHost);
    return Verdict::kPass;
  }
  Half& data = fromHost ? flow.out : flow.in;
  Half& acked = fromHost ? flow.in : flow.out;
  Seq before = data.nxt;
  bool wasIdle = !data.isOutstanding();
  Half::Data what = data.onData(s, options_.inactivity, stamp_);
  Half::Ack ack = acked.onAck(s, data.nxt, options_.gamma, stamp_);
  if (ack == Half::Ack::kNew) flow.doubtful = false;
  Verdict verdict = Verdict::kPass;
  if (fromHost) {
    onSent(i, packet, s, what, before, wasIdle);
    onHostAck(i, s, ack);
  } else {
    onGiven(i, packet, s, what);
    verdict = onPeerAck(i, s, ack);
  }
  if (flow.out.isFinished() && flow.in.isFinished()) erase(i);
  return verdict;
}

// RFC 5961 section 3.2: only the very next number resets. For others in the window the host asks back.
void AckShim::onReset(uint32_t i, const TcpSegment& s, bool fromHost) {
  ShimFlow& flow = table_[i];
  const Half& data = fromHost ? flow.out : flow.in;
  if (s.seq == data.nxt || s.seq == data.una) return erase(i);
  flow.doubtful = true;
}

void AckShim::erase(uint32_t i) {
  cache_.clear(table_[i].inTail);
  cache_.clear(table_[i].outTail);
  wheel_.cancel(i);
  table_.erase(i);
}

bool AckShim::isEnabled(const FlowKey& key) const {
  for (const ShimRule& rule : options_.rules) {
    auto hasPort = [&](uint16_t port) { return port >= rule.firstPort && port <= rule.lastPort; };
    bool anywhere = rule.prefix.address.family == Address::Family::kNone;
    bool here = anywhere || rule.prefix.contains(key.source()) || rule.prefix.contains(key.destination());
    if (here && (hasPort(key.sport) || hasPort(key.dport))) return rule.enabled;
  }
  return true;
}

void AckShim::onTimer(Time now) {
  wheel_.advance(forward(now), [&](uint32_t i) {
    ShimFlow& flow = table_[i];
    Duration idle = options_.idle - (stamp_ - flow.lastUse);
    if (idle <= Duration(0)) return erase(i);
    armIn(i, std::min({idle, onSenderTimer(flow), onReceiverTimer(flow)}));
  });
}

const ShimFlow* AckShim::find(const FlowKey& key) {
  uint32_t i = table_.findProven(key, table_.hash(key));
  return i == FlowTable::kNone ? nullptr : &table_[i];
}

Packet AckShim::poll(Ring<Packet>& ring) {
  if (ring.empty()) return {};
  Packet packet = std::move(ring.front());
  ring.popFront();
  return packet;
}

}  // namespace braid
