#pragma once

#include "ackshim/counters.h"
#include "ackshim/host_legs.h"
#include "ackshim/options.h"
#include "ackshim/outbox.h"
#include "ackshim/segment.h"
#include "ackshim/syn_replay.h"
#include "ackshim/tracked_flows.h"

namespace braid {

/// Flows that are not yet proven to have two ends that hear each other: half-open ones, or nothing at all.
/// They cost a place among the half-open ones, no timer and no cached packet, and the shim does nothing for
/// them but repeat a SYN to a local host whose leg it knows (syn_replay.h, host_legs.h).
class Openings {
 public:
  /// All must outlive it.
  Openings(const AckShimOptions& options, TrackedFlows& flows, ShimOutbox& outbox, ShimCounters& counters)
      : options_(options), flows_(flows), outbox_(outbox), counters_(counters) {}

  /// Any segment of a local host: it may answer a SYN that is kept, or begin another attempt.
  void onFromHost(const FlowPlace& place, const TcpSegment& s) {
    if (!syns_.empty()) onPossibleAnswer(place, s);
  }
  /// A segment that no proven flow takes. When it proves one that is to see it, that flow; else kNone.
  uint32_t onSegment(const FlowPlace& place, ByteView packet, const TcpSegment& s, bool fromHost);

  Time nextDeadline() const { return syns_.nextDeadline(); }
  void onTimer();

 private:
  static constexpr uint32_t kNone = TrackedFlows::kNone;

  void onSyn(const FlowPlace& place, uint32_t i, ByteView packet, const TcpSegment& s, bool fromHost);
  bool isEnabled(const FlowKey& key) const;
  uint32_t open(const FlowPlace& place, bool fromHost);
  void join(const FlowPlace& place, const TcpSegment& s, bool fromHost);
  bool isProof(ShimFlow& flow, const TcpSegment& s, bool fromHost);
  uint32_t prove(uint32_t halfOpen, uint64_t hash);
  bool makeRoom();
  uint64_t hostHash(const FlowKey& key) const;
  void keepSyn(const FlowPlace& place, ByteView packet, const TcpSegment& s);
  void onPossibleAnswer(const FlowPlace& place, const TcpSegment& s);
  void recallLeg(ShimFlow& flow);

  const AckShimOptions& options_;
  TrackedFlows& flows_;
  ShimOutbox& outbox_;
  ShimCounters& counters_;
  SynReplay syns_;
  HostLegs legs_;
};

}  // namespace braid
