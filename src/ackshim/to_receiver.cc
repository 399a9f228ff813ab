#include "ackshim/to_receiver.h"

#include <algorithm>

namespace braid {

namespace {
/// Segments that a receiver acknowledges one by one at the start of a connection: the quick ACKs of Linux.
constexpr uint8_t kQuickAcks = 16;
/// Replays that came too soon, after which a flow gets no more. Ours.
constexpr uint8_t kMaxSpurious = 2;
/// Segments after which one of these is forgiven: a host may be busy now and then, and a connection last for days. Ours:
/// of a thousand packets no more than one goes for nothing for long.
constexpr uint16_t kForgiving = 1000 + kQuickAcks;
constexpr uint8_t kMaxReplays = 15;
/// Round trips of the rest of the path in which a sender that heard `phi` duplicates is left to repair by
/// itself: one is enough, but the tunnel may have to repair the duplicates or the retransmission, and RACK
/// may wait for reordering. Ours.
constexpr int kSenderRoundTrips = 4;
/// The same of a sender that heard of one segment above the hole by SACK. With RACK (RFC 8985) that is enough; a hole
/// that is filled behind its back is reordering to it, for which it waits at each later loss. Ours.
constexpr int kRackRoundTrips = 2;
/// A leg with a smaller RTT is not judged by when its ACKs come: the gateway's own turns take as long. Ours.
constexpr Duration kReadableRtt = 2ms;
}  // namespace

void ToReceiver::onGiven(uint32_t i, ByteView packet, const TcpSegment& s, Half::Data data) {
  ShimFlow& flow = flows_[i];
  if (data == Half::Data::kNone) return;
  if (++flow.received > kForgiving) {
    flow.received = kQuickAcks + 1;
    if (flow.spurious > 0) --flow.spurious;
  }
  bool wanted = options_.replay && !flow.in.large && flow.spurious < kMaxSpurious;
  if (!wanted) return cache_.clear(flow.inTail);
  SeqRange range{s.seq, s.end};
  // A retransmission is kept too where the first copy was not: of a large flow that was silent and begins
  // anew.
  bool keep = data == Half::Data::kNew ||
              (!cache_.onAgain(flow.inTail, range, flows_.stamp()) && cache_.isBehind(flow.inTail, range));
  if (keep) counters_.cacheFull += !cache_.append(flow.inTail, packet, range, flows_.stamp());
  flows_.armIn(i, flow.in.rtt.hasSample() ? legWait(flow) : options_.rtoMin);
}

void ToReceiver::onHostAck(uint32_t i, const TcpSegment& s, Half::Ack ack) {
  ShimFlow& flow = flows_[i];
  bool isNew = ack == Half::Ack::kNew;
  if (flow.tried) {
    const TailCache::Entry* first = cache_.front(flow.inTail);
    Duration rtt = flow.in.rtt.smoothed();
    bool tooEarly = first && rtt >= kReadableRtt && flows_.stamp() - first->givenAt < rtt / 2;
    bool waste = flows_.trials().onAck(counters_, flows_.troubles(flow).inTrial, s, isNew, tooEarly);
    // The answer to the copy is the first that is heard: where no ACK may be delayed, one was lost.
    bool wasLost = isNew && s.hasDsack() && !mayDelayAck(flow);
    if (waste && !wasLost && flow.spurious < kMaxSpurious) ++flow.spurious;
    // Karn has no sample then. The likely one lets a leg that has become slower be noticed.
    if (isNew && first && flow.replays > 0 && !tooEarly)
      flow.in.rtt.onSample(flows_.stamp() - first->givenAt);
  }
  if (!isNew) return;
  flow.replays = 0;
  cache_.popBelow(flow.inTail, flow.in.una);
  const TailCache::Entry* first = cache_.front(flow.inTail);
  if (first && flow.in.rtt.hasSample()) {
    flows_.armIn(i, std::max(Duration(0), legWait(flow) - (flows_.stamp() - first->givenAt)));
  }
}

Duration ToReceiver::onTimer(ShimFlow& flow) {
  TailCache::Entry* first = cache_.front(flow.inTail);
  if (!first) return kNothing;
  Duration left = options_.rtoMin - (flows_.stamp() - flow.in.ackAt);
  if (left > Duration(0)) return std::min(left, sendAgain(flow, *first));
  cache_.clear(flow.inTail);  // the sender's own timer helps now
  flow.replays = 0;
  return kNothing;
}

Duration ToReceiver::sendAgain(ShimFlow& flow, TailCache::Entry& first) {
  const Half& in = flow.in;
  bool closed = in.hasWindow && in.window == 0;
  if (!options_.replay || !in.rtt.hasSample() || in.large || flow.doubtful || closed) return kNothing;
  if (flow.spurious >= kMaxSpurious || first.range.begin > in.una) return kNothing;
  // The sender wakes of itself and sends again; after that it counts. Some do not: gVisor's TCP without SACK
  // ignores duplicates of the first ACK.
  bool wakes = in.dupAcks >= options_.phi || (flow.sack && in.dupAcks > 0);
  if (wakes && first.given == 1) {
    if (!flow.out.rtt.hasSample()) return kNothing;
    int roundTrips = in.dupAcks >= options_.phi ? kSenderRoundTrips : kRackRoundTrips;
    Duration patience = roundTrips * flow.out.rtt.smoothed() + legWait(flow);
    Duration quiet = flows_.stamp() - latest(in.ackAt, in.activeAt);
    if (quiet < patience) return patience - quiet;
  }
  Duration wait = legWait(flow) * (int64_t{1} << flow.replays);
  Duration age = flows_.stamp() - first.givenAt;
  if (age < wait) return wait - age;
  if (outbox_.replayToHost(first.packet.view())) {
    flow.tried = true;
    flows_.trials().onFired(counters_, flows_.troubles(flow).inTrial, Actuator::kFarReplay, in.una, true);
  }
  flow.in.timing = false;  // Karn: two copies, one timestamp
  first.givenAt = flows_.stamp();
  if (first.given < UINT8_MAX) ++first.given;
  if (flow.replays < kMaxReplays) ++flow.replays;
  return wait * 2;
}

// That of a lone segment, when the host is past its quick ACKs or answers with data (RFC 5681 section 4.2).
bool ToReceiver::mayDelayAck(const ShimFlow& flow) {
  bool lone = flow.inTail.count == 1;
  return lone && (flow.hostTalks || flow.received > kQuickAcks);
}

// What the leg takes and the host's own time.
Duration ToReceiver::legWait(const ShimFlow& flow) const {
  Duration wait = flow.in.rtt.patience() + options_.replayMargin;
  return mayDelayAck(flow) || flow.spurious > 0 ? wait + options_.ackDelay : wait;
}

}  // namespace braid
