#pragma once

#include <algorithm>

#include "ackshim/counters.h"
#include "ackshim/host_legs.h"
#include "ackshim/options.h"
#include "ackshim/outbox.h"
#include "ackshim/segment.h"
#include "ackshim/syn_replay.h"
#include "ackshim/tracked_flows.h"
#include "ackshim/tunnel_knowledge.h"

namespace braid {

/// Flows that are not yet proven to have two ends that hear each other: half-open ones, or nothing at all.
/// They cost a place among the half-open ones, no timer and no cached packet, and the shim does nothing for
/// them but repeat a SYN to a host whose round trip it knows (syn_replay.h, host_legs.h).
class Openings {
 public:
  /// All must outlive it.
  Openings(const AckShimOptions& options, TrackedFlows& flows, ShimOutbox& outbox, ShimCounters& counters,
           const TunnelKnowledge* tunnel)
      : options_(options), flows_(flows), outbox_(outbox), counters_(counters), tunnel_(tunnel) {}

  /// Any segment: it may answer a SYN that is kept, or begin another attempt.
  void onAny(const FlowPlace& place, const TcpSegment& s, bool fromHost) {
    if (!towards(fromHost).syns.empty()) onPossibleAnswer(place, s, fromHost);
  }
  /// The first sample of a proven flow's way to that host and back.
  void onMeasured(const ShimFlow& flow, bool atHost) {
    const LegRtt& rtt = (atHost ? flow.in : flow.out).rtt;
    towards(atHost).legs.note(hostHash(flow.key, atHost), rtt.smoothed());
  }
  /// A segment that no proven flow takes. When it proves one that is to see it, that flow; else kNone.
  uint32_t onSegment(const FlowPlace& place, ByteView packet, const TcpSegment& s, bool fromHost);

  Time nextDeadline() const { return std::min(hosts_.syns.nextDeadline(), peers_.syns.nextDeadline()); }
  void onTimer();

 private:
  static constexpr uint32_t kNone = TrackedFlows::kNone;

  // The hosts at one side of this gateway: what is known of them, and what was sent to them.
  struct Side {
    SynReplay syns;
    HostLegs legs;
  };
  Side& towards(bool hosts) { return hosts ? hosts_ : peers_; }

  void onSyn(const FlowPlace& place, uint32_t i, ByteView packet, const TcpSegment& s, bool fromHost);
  bool isEnabled(const FlowKey& key) const;
  uint32_t open(const FlowPlace& place, bool fromHost);
  void join(const FlowPlace& place, const TcpSegment& s, bool fromHost);
  bool isProof(ShimFlow& flow, const TcpSegment& s, bool fromHost);
  uint32_t prove(uint32_t halfOpen, uint64_t hash);
  bool makeRoom();
  uint64_t hostHash(const FlowKey& key, bool local) const;
  void keepSyn(const FlowPlace& place, ByteView packet, const TcpSegment& s, bool fromHost);
  void onPossibleAnswer(const FlowPlace& place, const TcpSegment& s, bool fromHost);
  void recallLeg(ShimFlow& flow);

  const AckShimOptions& options_;
  TrackedFlows& flows_;
  ShimOutbox& outbox_;
  ShimCounters& counters_;
  const TunnelKnowledge* tunnel_;
  Side hosts_;
  Side peers_;
};

}  // namespace braid
