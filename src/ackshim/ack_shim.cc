#include "ackshim/ack_shim.h"

#include <algorithm>
#include <array>
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

// Three times over the packets, so that their flows' places in memory are waited for together.
void AckShim::onPackets(std::span<Seen> packets, Time now) {
  forward(now);
  std::array<Place, kBatch> places;
  for (; !packets.empty(); packets = packets.subspan(std::min(packets.size(), kBatch))) {
    std::span<Seen> batch = packets.first(std::min(packets.size(), kBatch));
    for (size_t n = 0; n < batch.size(); ++n) {
      if (!batch[n].parsed->tcp) continue;
      places[n] = placeOf(*batch[n].parsed, batch[n].fromHost);
      table_.prefetch(places[n].hash);
    }
    for (size_t n = 0; n < batch.size(); ++n) {
      if (batch[n].parsed->tcp) table_.fetch(places[n].hash);
    }
    for (size_t n = 0; n < batch.size(); ++n) {
      Seen& p = batch[n];
      if (p.parsed->tcp) p.verdict = onSegment(places[n], p.packet, *p.parsed, p.fromHost);
    }
  }
}

AckShim::Verdict AckShim::onPacket(ByteView packet, const InnerPacket& parsed, bool fromHost, Time now) {
  if (!parsed.tcp) return Verdict::kPass;
  forward(now);
  return onSegment(placeOf(parsed, fromHost), packet, parsed, fromHost);
}

AckShim::Place AckShim::placeOf(const InnerPacket& parsed, bool fromHost) const {
  FlowKey key = fromHost ? parsed.flowKey() : parsed.flowKey().reversed();
  return {key, table_.hash(key)};
}

AckShim::Verdict AckShim::onSegment(const Place& place, ByteView packet, const InnerPacket& parsed,
                                    bool fromHost) {
  const auto& [key, hash] = place;
  packet = packet.first(parsed.size);
  TcpSegment s = readSegment(packet, parsed);
  if (fromHost && !syns_.empty()) {
    if (s.isAck() || s.isRst()) onSynAnswered(key, hash);
    if (s.isSyn() && !s.isAck()) syns_.cancel(key, hash);
  }
  uint32_t i = table_.findProven(key, hash);
  // A SYN says that a new connection may begin: the old one stays until the other end agrees (RFC 5961
  // section 4.2). The same goes for what does not fit.
  if (i != FlowTable::kNone && !s.isSyn()) {
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
  Half::Before before = data.before(options_.inactivity, stamp_);
  Half::Data what = data.onData(s, options_.inactivity, stamp_);
  Half::Ack ack = acked.onAck(s, data.nxt, options_.gamma, stamp_);
  if (ack == Half::Ack::kNew) flow.doubtful = false;
  Verdict verdict = Verdict::kPass;
  if (fromHost) {
    onSent(i, packet, s, what, before);
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
  flow.tracks = {};  // the other end's challenge ACK must come through
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
    Duration next = std::min({idle, onSenderTimer(flow), onReceiverTimer(flow)});
    flow.timerAt = stamp_ + next;
    wheel_.arm(i, now_ + next);
  });
  syns_.onTimer(now_, counters_, [&](ByteView packet) { return replay(toHost_, packet); });
}

void AckShim::armIn(uint32_t i, Duration ahead) {
  ShimFlow& flow = table_[i];
  ahead = std::min(ahead, AckShimOptions::kMaxIdle);  // what a stamp can compare
  Stamp at = stamp_ + ahead;
  if (flow.timerAt - at <= Duration(0)) return;
  flow.timerAt = at;
  wheel_.armEarlier(i, now_ + ahead);
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
