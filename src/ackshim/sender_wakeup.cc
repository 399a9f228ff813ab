#include "ackshim/sender_wakeup.h"

#include <algorithm>
#include <array>
#include <optional>

namespace braid {

namespace {
/// The gap below the paper's SACK block, bytes (T-RACKs section IV-C, "TCP Header manipulation").
constexpr uint32_t kPaperGap = 40;
/// Age given to a hole that is certainly a loss, so that no allowance for reordering is waited for.
constexpr Duration kCertain = 60s;
/// Least pause between two questions whether the tunnel still carries the data.
constexpr Duration kLook = 1ms;
}  // namespace

void SenderWakeup::onSent(uint32_t i, ByteView packet, const TcpSegment& s, TcpDirection::Data data,
                          const TcpDirection::Before& before) {
  ShimFlow& flow = flows_[i];
  if (flow.acted && data != TcpDirection::Data::kNew)
    flows_.interventions().onAgain(flows_.lossState(flow).outIntervention, s);
  if (data == TcpDirection::Data::kNone) return;
  if (flow.receivedSegments > 0 && s.length > 0) flow.hostAnswers = true;
  if (flow.out.large) return;
  uint32_t length = s.end.value - s.seq.value;
  if (before.begins) {  // Algorithm 1 lines 8-11
    flow.tracks = {};
    flow.boundaries.clear();
    flow.headLength = 0;
  }
  if (before.begins || before.wasIdle) flow.hasGap = flow.holeReported = flow.headResent = false;
  if (before.wasIdle) {
    flow.headLength = s.seq == flow.out.una && length < 4096 ? length : 0;
  }
  flow.tracks.onData();
  if (data == TcpDirection::Data::kNew) {
    flow.boundaries.push(length, s.seq == before.nxt);
  } else if (s.seq <= flow.out.una && !before.begins) {
    keepAgain(flow, packet, {s.seq, s.end});
  }
  onArrived(flow, {s.seq, s.end}, before.nxt);
  if (hasHole(flow) && !flow.holeReported) flows_.armEarlier(i, options_.reorderAllowance);
  if (options_.cacheOutgoing) keep(flow, packet, {s.seq, s.end});
  flow.mayBeCarried = true;
  armLook(i);
}

// Called when the sender resends. It is in recovery, or its timer fired. RFC 6582 makes it ignore
// further duplicate ACKs until the resent data is acknowledged. If that is lost as well, only a
// replay by the shim can help, so the segment is kept.
void SenderWakeup::keepAgain(ShimFlow& flow, ByteView packet, SeqRange range) {
  if (!options_.replay) return;
  flow.headResent = true;
  if (!options_.cacheOutgoing) keep(flow, packet, range);
}

void SenderWakeup::keep(ShimFlow& flow, ByteView packet, SeqRange range) {
  if (cache_.onResent(flow.outTail, range, flows_.stamp())) return;
  counters_.cacheFull += !cache_.append(flow.outTail, packet, range, flows_.stamp());
}

// Arms the first look at the tunnel for one round trip before beta is over; see onTimer(). beta is
// at least alpha round trips.
void SenderWakeup::armLook(uint32_t i) {
  const LegRtt& rtt = flows_[i].out.rtt;
  if (rtt.hasSample()) flows_.armEarlier(i, (std::max(options_.alpha, 1u) - 1) * rtt.smoothed());
}

// Data of `range` arrived. `before`: one after the highest byte seen before. Without a gap all data
// up to there had arrived.
void SenderWakeup::onArrived(ShimFlow& flow, SeqRange range, Seq before) {
  if (!flow.hasGap && range.begin <= before) return;
  Arrivals& arrivals = flows_.lossState(flow).arrivals;
  if (!flow.hasGap) arrivals.restart(before);
  Seq edge = arrivals.edge;
  arrivals.onArrive(range, flows_.stamp());
  if (arrivals.edge != edge) flow.holeReported = false;
  flow.hasGap = arrivals.edge != flow.out.nxt;
}

bool SenderWakeup::hasHole(const ShimFlow& flow) {
  return flow.hasGap && flows_.lossState(flow).arrivals.hasHole();
}

bool SenderWakeup::onPeerAck(uint32_t i, const TcpSegment& s, TcpDirection::Ack ack) {
  ShimFlow& flow = flows_[i];
  TcpDirection& out = flow.out;
  if (out.large) cache_.clear(flow.outTail);
  if (s.ack != out.una) return true;
  flow.ackHasTimestamps = s.options.timestamps.has_value();
  if (flow.ackHasTimestamps) flow.ackTimestamps = *s.options.timestamps;
  flow.ackFlowLabel = s.flowLabel & 0xfffff;
  if (s.options.sackCount > 0) flow.sack = true;
  if (out.large) return true;
  bool isNew = ack == TcpDirection::Ack::kNew;
  if (flow.acted)
    flows_.interventions().onAck(counters_, flows_.lossState(flow).outIntervention, s, isNew,
                                 false);
  bool recovering = flow.tracks.isRecovering();
  if (isNew) {
    flow.tracks.onNewAck();
    flow.mayBeCarried = true;
    flow.headResent = false;
    cache_.popBelow(flow.outTail, out.una);
    // Acknowledged data has arrived, even if it did not pass this gateway.
    if (flow.hasGap) onArrived(flow, {flows_.lossState(flow).arrivals.edge, out.una}, out.nxt);
    auto second = flow.boundaries.secondBegin(out.una, out.nxt);
    uint32_t length = second ? second->value - out.una.value : 0;
    flow.headLength = length < 4096 ? length : 0;
  }
  if (out.isOutstanding()) {
    if (hasHole(flow) && !flow.holeReported) flows_.armEarlier(i, Duration(0));
    if (flow.hasDropped) flows_.armEarlier(i, Duration(0));
    armLook(i);
  }
  // Algorithm 1 line 31: duplicate ACKs are dropped during a recovery, but not if they tell the
  // sender something new.
  bool says =
      s.options.sackCount > 0 || s.flags & (TcpFields::kEce | TcpFields::kCwr | TcpFields::kUrg);
  if (ack != TcpDirection::Ack::kDuplicate || !recovering || says) return true;
  ++counters_.acksDropped;
  return false;
}

void SenderWakeup::onDropped(uint32_t i, ByteView packet, const TcpSegment& s) {
  ShimFlow& flow = flows_[i];
  bool isInFlight = s.hasData() && s.end > flow.out.una && s.end <= flow.out.nxt;
  if (!isInFlight || flow.out.large || s.isSyn()) return;
  SeqRange range{s.seq, s.end};
  Arrivals& arrivals = flows_.lossState(flow).arrivals;
  if (!flow.hasGap) arrivals.restart(flow.out.nxt);
  Seq edge = arrivals.edge;
  arrivals.onLost(range, flows_.stamp() + -kCertain);
  flow.hasGap = arrivals.edge != flow.out.nxt;
  if (arrivals.edge != edge) flow.holeReported = false;
  keep(flow, packet, range);
  flow.hasDropped = true;
  flows_.armEarlier(i, Duration(0));
}

Duration SenderWakeup::onTimer(ShimFlow& flow) {
  const TcpDirection& out = flow.out;
  bool closed = out.hasWindow && out.window == 0;
  if (out.large || !out.isOutstanding() || flow.resetSuspected || closed) return kNothing;
  Duration next = std::min(tellHole(flow), replayDropped(flow));
  if (!options_.duplicateAcks || !out.rtt.hasSample()) return next;
  Duration left = flow.tracks.left(out, options_, random_, flows_.stamp());
  Duration rtt = out.rtt.smoothed();
  Duration ahead = flow.mayBeCarried ? rtt : Duration(0);
  if (left > ahead) return std::min(next, left - ahead);
  // Data that the tunnel has only just delivered needs another round trip to be acknowledged. So
  // the shim speaks only if it asked a round trip ago as well, and the tunnel carried nothing of
  // the flow both times.
  bool carrying = tunnel_ && tunnel_->isCarrying(flow.key);
  if (carrying || flow.mayBeCarried) {
    counters_.silent += carrying && left <= Duration(0);
    flow.mayBeCarried = carrying;
    if (carrying && flows_.stamp() - out.ackAt >= options_.rtoMin)
      return next;  // nothing until a packet arrives
    return std::min(next, carrying ? std::max(rtt, kLook) : rtt);
  }
  if (std::optional<uint8_t> acks = flow.tracks.act(out, options_, flows_.stamp()))
    speak(flow, *acks);
  return std::min(next, std::max(kLook, flow.tracks.left(out, options_, random_, flows_.stamp())));
}

// Tells the sender about data that was lost before the gateway, or that the tunnel dropped. The
// duplicate ACKs report what did arrive, which is now the tunnel's duty to deliver. With SACK,
// everything except the first unacknowledged segment and the hole is covered, so that at most that
// one segment is resent for nothing. Without SACK the hole must be at the ACK.
Duration SenderWakeup::tellHole(ShimFlow& flow) {
  const TcpDirection& out = flow.out;
  if (!options_.holes || flow.holeReported || !hasHole(flow)) return kNothing;
  const Arrivals& arrivals = flows_.lossState(flow).arrivals;
  Duration allowance = std::max(options_.reorderAllowance, flow.in.rtt.smoothed() / 4);
  Duration age = flows_.stamp() - arrivals.since;
  if (age < allowance) return allowance - age;
  std::array<SeqRange, 3> sacks{};
  size_t count = 0;
  for (const SeqRange& range : arrivals.ahead) {
    if (!range.empty()) sacks[count++] = range;
  }
  if (out.una != arrivals.edge) {
    if (!flow.sack || flow.headLength == 0) return kNothing;  // until the ACK reaches it
    SeqRange between{out.una + flow.headLength, arrivals.edge};
    if (between.begin < between.end) sacks[count++] = between;
  }
  flow.holeReported = true;
  if (out.dupAcks >= options_.phi) return kNothing;
  sendAcks(flow, static_cast<uint8_t>(options_.phi - out.dupAcks),
           std::span(sacks).first(flow.sack ? count : 0));
  onFired(flow, Actuator::kHole, arrivals.edge, false);
  if (out.rtt.hasSample()) flow.tracks.onSpoken(out, options_, random_, flows_.stamp());
  return kNothing;
}

// Replays a segment that the tunnel dropped and that no other segment followed: no duplicate ACK
// would make its sender resend it.
Duration SenderWakeup::replayDropped(ShimFlow& flow) {
  if (!flow.hasDropped) return kNothing;
  TailCache::Entry* entry = cache_.front(flow.outTail);
  bool late =
      flows_.stamp() - flow.out.ackAt >= options_.rtoMin;  // its sender's own timer resends now
  if (!entry || hasHole(flow) || late || !options_.replay) {
    flow.hasDropped = false;
    if (!options_.cacheOutgoing) cache_.clear(flow.outTail);
    return kNothing;
  }
  if (entry->range.begin > flow.out.una) return kNothing;  // until the ACK reaches it
  Duration wait = std::max(flow.out.rtt.smoothed(), kLook) - (flows_.stamp() - entry->sentAt);
  if (wait > Duration(0)) return wait;
  if (outbox_.replayToPeer(entry->packet.view())) {
    flow.out.timing = false;  // Karn
    onFired(flow, Actuator::kNearReplay, flow.out.una, true);
    onArrived(flow, entry->range, flow.out.nxt);
  }
  cache_.popFront(flow.outTail);
  return cache_.front(flow.outTail) ? kLook : kNothing;
}

void SenderWakeup::speak(ShimFlow& flow, uint8_t acks) {
  const TcpDirection& out = flow.out;
  auto last = flow.boundaries.lastBegin(out.nxt);
  bool several = last && *last > out.una;
  TailCache::Entry* kept = cache_.front(flow.outTail);
  if ((flow.headResent || !several) && options_.replay && kept && kept->range.begin <= out.una) {
    flow.out.timing = false;  // Karn
    if (outbox_.replayToPeer(kept->packet.view()))
      onFired(flow, Actuator::kNearReplay, out.una, true);
    return;
  }
  if (acks == 0) return;
  if (!flow.sack) {
    sendAcks(flow, acks, {});
    return onFired(flow, Actuator::kPureDupAck, out.una, false);
  }
  std::array<SeqRange, 1> block{};
  if (several) {
    block[0] = {*last, out.nxt};
  } else if (options_.sackGap && out.nxt - out.una > static_cast<int32_t>(kPaperGap)) {
    block[0] = {out.una + kPaperGap, out.nxt};
  } else {
    ++counters_.helpless;
    return;
  }
  sendAcks(flow, acks, block);
  onFired(flow, Actuator::kSackDupAck, out.una, false);
}

void SenderWakeup::onFired(ShimFlow& flow, Actuator actuator, Seq at, bool sent) {
  flow.acted = true;
  flows_.interventions().onFired(counters_, flows_.lossState(flow).outIntervention, actuator, at,
                                 sent);
}

void SenderWakeup::sendAcks(ShimFlow& flow, uint8_t count, std::span<const SeqRange> sacks) {
  TcpAck ack;
  ack.key = flow.key.reversed();
  ack.seq = flow.in.nxt;
  ack.ack = flow.out.una;
  ack.window = flow.out.scaledWindow();
  ack.hopLimit = flow.out.hopLimit;
  ack.dscp = flow.out.dscp;
  ack.flowLabel = flow.ackFlowLabel;
  if (flow.ackHasTimestamps) ack.timestamps = flow.ackTimestamps;
  ack.sacks = sacks;
  for (; count > 0; --count) {
    if (!outbox_.acknowledge(ack)) return;
    ++counters_.acksSent;
  }
}

}  // namespace braid
