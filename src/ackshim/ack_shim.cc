#include "ackshim/ack_shim.h"

#include <algorithm>

namespace braid {

AckShim::AckShim(const AckShimOptions& options, PacketPool& pool, const FlowActivityQuery* tunnel,
                 const Seeds& seeds)
    : outbox_(pool, counters_),
      flows_(options, pool.payload(), seeds.flows),
      sender_(options_, flows_, outbox_, counters_, tunnel, Random(seeds.waits)),
      receiver_(options_, flows_, outbox_, counters_),
      openings_(options_, flows_, outbox_, counters_, tunnel) {
  setOptions(options);
}

void AckShim::setOptions(const AckShimOptions& options) {
  options_ = options;
  options_.idle = std::min(options.idle, AckShimOptions::kMaxIdle);
}

void AckShim::onFromHost(ByteView packet, const InnerPacket& parsed, Time now) {
  onPacket(packet, parsed, true, now);
}

AckShim::Verdict AckShim::onToHost(ByteView packet, const InnerPacket& parsed, Time now) {
  return onPacket(packet, parsed, false, now);
}

AckShim::Verdict AckShim::onPacket(ByteView packet, const InnerPacket& parsed, bool fromHost,
                                   Time now) {
  if (!parsed.tcp) return Verdict::kPass;
  flows_.advanceTo(now);
  return onSegment(hashedKeyOf(parsed, fromHost), packet, parsed, fromHost);
}

HashedKey AckShim::hashedKeyOf(const InnerPacket& parsed, bool fromHost) const {
  FlowKey key = fromHost ? parsed.flowKey() : parsed.flowKey().reversed();
  return {key, flows_.table().hash(key)};
}

AckShim::Verdict AckShim::onSegment(const HashedKey& hashed, ByteView packet,
                                    const InnerPacket& parsed, bool fromHost) {
  packet = packet.first(parsed.size);
  TcpSegment s = readSegment(packet, parsed);
  openings_.onAny(hashed, s, fromHost);
  uint32_t i = flows_.table().findProven(hashed.key, hashed.hash);
  // A SYN may begin a new connection. The old one stays until the other end agrees (RFC 5961
  // section 4.2). A segment outside the known flow's windows is treated alike.
  if (i != TrackedFlows::kNone && !s.isSyn()) {
    const ShimFlow& flow = flows_[i];
    const TcpDirection& data = fromHost ? flow.out : flow.in;
    const TcpDirection& acked = fromHost ? flow.in : flow.out;
    bool fits = data.mayCarry(s) && (s.isAck() ? acked.mayAcknowledge(s.ack) : s.isRst());
    if (fits) return onProven(i, packet, s, fromHost);
    ++counters_.foreign;
  }
  i = openings_.onSegment(hashed, packet, s, fromHost);
  if (i != TrackedFlows::kNone) onProven(i, packet, s, fromHost);
  return Verdict::kPass;
}

AckShim::Verdict AckShim::onProven(uint32_t i, ByteView packet, const TcpSegment& s,
                                   bool fromHost) {
  ShimFlow& flow = flows_[i];
  flow.lastUse = flows_.stamp();
  if (s.isRst()) {
    onReset(i, s, fromHost);
    return Verdict::kPass;
  }
  TcpDirection& data = fromHost ? flow.out : flow.in;
  TcpDirection& acked = fromHost ? flow.in : flow.out;
  TcpDirection::Before before = data.before(s, acked, options_.inactivity, flows_.stamp());
  TcpDirection::Data what = data.onData(s, before, flows_.stamp());
  bool wasMeasured = acked.rtt.hasSample();
  TcpDirection::Ack ack = acked.onAck(s, data.nxt, options_.gamma, flows_.stamp());
  if (!wasMeasured && acked.rtt.hasSample()) openings_.onMeasured(flow, fromHost);
  if (what == TcpDirection::Data::kNew) acked.onSaid(data.nxt.value - before.nxt.value);
  if (ack == TcpDirection::Ack::kNew) flow.resetSuspected = false;
  Verdict verdict = Verdict::kPass;
  if (fromHost) {
    sender_.onSent(i, packet, s, what, before);
    receiver_.onHostAck(i, s, ack);
  } else {
    receiver_.onGiven(i, packet, s, what);
    if (!sender_.onPeerAck(i, s, ack)) verdict = Verdict::kDrop;
  }
  if (flow.out.isFinished() && flow.in.isFinished()) flows_.erase(i);
  return verdict;
}

// Only a RST with exactly the next number resets the connection (RFC 5961 section 3.2). A RST
// elsewhere in the window makes the host ask back by a challenge ACK, so the shim stays silent.
void AckShim::onReset(uint32_t i, const TcpSegment& s, bool fromHost) {
  ShimFlow& flow = flows_[i];
  const TcpDirection& data = fromHost ? flow.out : flow.in;
  if (s.seq == data.nxt || s.seq == data.una) return flows_.erase(i);
  flow.resetSuspected = true;
  sender_.onDoubt(flow);
}

void AckShim::onTunnelDropped(ByteView packet, const InnerPacket& parsed, Time now) {
  if (!parsed.tcp) return;
  flows_.advanceTo(now);
  HashedKey hashed = hashedKeyOf(parsed, true);
  uint32_t i = flows_.table().findProven(hashed.key, hashed.hash);
  if (i == TrackedFlows::kNone) return;
  packet = packet.first(parsed.size);
  sender_.onDropped(i, packet, readSegment(packet, parsed));
}

void AckShim::onTimer(Time now) {
  flows_.advanceTo(now);
  flows_.onTimer(options_.idle, [&](ShimFlow& flow) {
    return std::min({sender_.onTimer(flow), receiver_.onTimer(flow)});  // the sender first
  });
  openings_.onTimer();
}

const ShimFlow* AckShim::find(const FlowKey& key) {
  uint32_t i = flows_.table().findProven(key, flows_.table().hash(key));
  return i == TrackedFlows::kNone ? nullptr : &flows_[i];
}

}  // namespace braid
