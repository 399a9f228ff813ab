#pragma once

#include <algorithm>

#include "ackshim/flow_table.h"
#include "ackshim/options.h"
#include "ackshim/segment.h"

namespace braid {

/// Serves the local host as a receiver. The gateway measures the round trip of its own leg to the
/// host, and sends a segment from the tail cache again if the host does not acknowledge it within
/// that time (docs/ackshim.md, "When to send again to a receiver").
class ReceiverReplay {
 public:
  /// All arguments must outlive this.
  ReceiverReplay(const AckShimOptions& options, TrackedFlows& flows, ShimOutbox& outbox,
                 ShimCounters& counters)
      : options_(options),
        flows_(flows),
        cache_(flows.cache()),
        outbox_(outbox),
        counters_(counters) {}

  /// The peer's segment `s` is sent to the host. `data`: what TcpDirection::onData() returned for
  /// it.
  void onGiven(uint32_t i, ByteView packet, const TcpSegment& s, TcpDirection::Data data);
  /// The host's segment `s` arrived. `ack`: what TcpDirection::onAck() returned for it.
  void onHostAck(uint32_t i, const TcpSegment& s, TcpDirection::Ack ack);
  /// Does what is due. Returns the time until something is due again; TracksTimer::kNothing when
  /// nothing is due until a packet arrives.
  Duration onTimer(ShimFlow& flow);

 private:
  /// Segments that a receiver acknowledges one by one at the start of a connection (the quick ACKs
  /// of Linux).
  static constexpr uint8_t kQuickAcks = 16;
  /// After this number of replays that came too soon, a flow gets no more.
  static constexpr uint8_t kMaxSpurious = 2;
  /// Segments after which one replay that came too soon is forgiven, because a host may be busy now
  /// and then, and a connection may last for days. In the long run at most one packet in a thousand
  /// is sent for nothing.
  static constexpr uint16_t kForgiving = 1000 + kQuickAcks;
  static constexpr uint8_t kMaxReplays = 15;
  /// How long a sender that heard `phi` duplicate ACKs is left to repair the loss by itself, in
  /// round trips of the rest of the path. One is enough in principle, but the tunnel may have to
  /// repair the duplicates or the retransmission, and RACK may wait for reordering.
  static constexpr int kSenderRoundTrips = 4;
  /// How long a sender is left to repair the loss by itself that heard by SACK of one segment above
  /// the hole, in round trips. For RACK (RFC 8985) one such SACK is enough. If the hole were filled
  /// by the gateway, the sender would take that for reordering, and wait for it at each later loss.
  static constexpr int kRackRoundTrips = 2;
  /// On a leg with a smaller RTT, the arrival time of an ACK does not tell which copy it is for,
  /// because the gateway's own event loop delays packets about as long.
  static constexpr Duration kReadableRtt = 2ms;

  static constexpr Duration kNothing = TracksTimer::kNothing;

  Duration sendAgain(ShimFlow& flow, TailCache::Entry& first);
  static bool mayDelayAck(const ShimFlow& flow);
  Duration legWait(const ShimFlow& flow) const;

  const AckShimOptions& options_;
  TrackedFlows& flows_;
  TailCache& cache_;
  ShimOutbox& outbox_;
  ShimCounters& counters_;
};

inline void ReceiverReplay::onGiven(uint32_t i, ByteView packet, const TcpSegment& s,
                                    TcpDirection::Data data) {
  ShimFlow& flow = flows_[i];
  if (data == TcpDirection::Data::kNone) return;
  if (++flow.receivedSegments > kForgiving) {
    flow.receivedSegments = kQuickAcks + 1;
    if (flow.spuriousReplays > 0) --flow.spuriousReplays;
  }
  bool wanted = options_.replay && !flow.in.large && flow.spuriousReplays < kMaxSpurious;
  if (!wanted) return cache_.clear(flow.inTail);
  SeqRange range{s.seq, s.end};
  // A retransmission is kept, too, if its first copy was not. That happens in a large flow that was
  // silent and begins again.
  bool keep =
      data == TcpDirection::Data::kNew ||
      (!cache_.onResent(flow.inTail, range, flows_.stamp()) && cache_.isBehind(flow.inTail, range));
  if (keep) counters_.cacheFull += !cache_.append(flow.inTail, packet, range, flows_.stamp());
  flows_.armEarlier(i, flow.in.rtt.hasSample() ? legWait(flow) : options_.rtoMin);
}

inline void ReceiverReplay::onHostAck(uint32_t i, const TcpSegment& s, TcpDirection::Ack ack) {
  ShimFlow& flow = flows_[i];
  bool isNew = ack == TcpDirection::Ack::kNew;
  if (flow.acted) {
    const TailCache::Entry* first = cache_.front(flow.inTail);
    Duration rtt = flow.in.rtt.smoothed();
    bool tooEarly = first && rtt >= kReadableRtt && flows_.stamp() - first->sentAt < rtt / 2;
    bool waste = flows_.interventions().onAck(counters_, flows_.lossState(flow).inIntervention, s,
                                              isNew, tooEarly);
    // The first ACK that arrives is that for the copy. As the host may not delay ACKs here, the ACK
    // for the original was lost, so the replay was not wasted.
    bool wasLost = isNew && s.hasDsack() && !mayDelayAck(flow);
    if (waste && !wasLost && flow.spuriousReplays < kMaxSpurious) ++flow.spuriousReplays;
    // Karn's rule gives no sample after a replay. The time since the last copy is taken as a likely
    // one, so that a leg that has become slower is noticed.
    if (isNew && first && flow.replays > 0 && !tooEarly)
      flow.in.rtt.onSample(flows_.stamp() - first->sentAt);
  }
  if (!isNew) return;
  flow.replays = 0;
  cache_.popBelow(flow.inTail, flow.in.una);
  const TailCache::Entry* first = cache_.front(flow.inTail);
  if (first && flow.in.rtt.hasSample()) {
    flows_.armEarlier(i, std::max(Duration(0), legWait(flow) - (flows_.stamp() - first->sentAt)));
  }
}

inline Duration ReceiverReplay::onTimer(ShimFlow& flow) {
  TailCache::Entry* first = cache_.front(flow.inTail);
  if (!first) return kNothing;
  Duration left = options_.rtoMin - (flows_.stamp() - flow.in.ackAt);
  if (left > Duration(0)) return std::min(left, sendAgain(flow, *first));
  cache_.clear(flow.inTail);  // the sender's own timer resends now
  flow.replays = 0;
  return kNothing;
}

inline Duration ReceiverReplay::sendAgain(ShimFlow& flow, TailCache::Entry& first) {
  const TcpDirection& in = flow.in;
  bool closed = in.hasWindow && in.window == 0;
  if (!options_.replay || !in.rtt.hasSample() || in.large || flow.resetSuspected || closed)
    return kNothing;
  if (flow.spuriousReplays >= kMaxSpurious || first.range.begin > in.una) return kNothing;
  // A sender that got enough duplicate ACKs resends by itself, so it is given time first. But some
  // do not resend: gVisor's TCP without SACK ignores duplicates of the first ACK.
  bool wakes = in.dupAcks >= options_.phi || (flow.sack && in.dupAcks > 0);
  if (wakes && first.sendCount == 1) {
    if (!flow.out.rtt.hasSample()) return kNothing;
    int roundTrips = in.dupAcks >= options_.phi ? kSenderRoundTrips : kRackRoundTrips;
    Duration patience = roundTrips * flow.out.rtt.smoothed() + legWait(flow);
    Duration quiet = flows_.stamp() - latest(in.ackAt, in.activeAt);
    if (quiet < patience) return patience - quiet;
  }
  Duration wait = legWait(flow) * (int64_t{1} << flow.replays);
  Duration age = flows_.stamp() - first.sentAt;
  if (age < wait) return wait - age;
  if (outbox_.replayToHost(first.packet.view())) {
    flow.acted = true;
    flows_.interventions().onFired(counters_, flows_.lossState(flow).inIntervention,
                                   Actuator::kFarReplay, in.una, true);
  }
  flow.in.timing = false;  // Karn's rule: two copies with the same timestamp
  first.sentAt = flows_.stamp();
  if (first.sendCount < UINT8_MAX) ++first.sendCount;
  if (flow.replays < kMaxReplays) ++flow.replays;
  return wait * 2;
}

// Whether the host may delay its ACK: for a lone segment, when the host is past its quick ACKs or
// answers with data (RFC 5681 section 4.2).
inline bool ReceiverReplay::mayDelayAck(const ShimFlow& flow) {
  bool lone = flow.inTail.count == 1;
  return lone && (flow.hostAnswers || flow.receivedSegments > kQuickAcks);
}

// How long to wait for the host's ACK: the leg's RTT with variation, plus the host's own time.
inline Duration ReceiverReplay::legWait(const ShimFlow& flow) const {
  Duration wait = flow.in.rtt.patience() + options_.replayMargin;
  return mayDelayAck(flow) || flow.spuriousReplays > 0 ? wait + options_.ackDelay : wait;
}

}  // namespace braid
