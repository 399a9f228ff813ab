#pragma once

#include "ackshim/counters.h"
#include "ackshim/options.h"
#include "ackshim/outbox.h"
#include "ackshim/segment.h"
#include "ackshim/tracked_flows.h"

namespace braid {

/// The local host as a receiver: the gateway times its own leg, and sends again from the tail cache what the
/// host does not acknowledge within that (docs/ackshim.md, "When to send again to a receiver").
class ToReceiver {
 public:
  /// All must outlive it.
  ToReceiver(const AckShimOptions& options, TrackedFlows& flows, ShimOutbox& outbox, ShimCounters& counters)
      : options_(options), flows_(flows), cache_(flows.cache()), outbox_(outbox), counters_(counters) {}

  /// The peer's segment `s` goes to the host; `data` is what the flow's half made of it.
  void onGiven(uint32_t i, ByteView packet, const TcpSegment& s, Half::Data data);
  /// The host's segment `s` came; `ack` is what the half made of it.
  void onHostAck(uint32_t i, const TcpSegment& s, Half::Ack ack);
  /// Does what is due. The time until something is due again; Tracks::kNothing when only packets change that.
  Duration onTimer(ShimFlow& flow);

 private:
  static constexpr Duration kNothing = Tracks::kNothing;

  Duration sendAgain(ShimFlow& flow, TailCache::Entry& first);
  static bool mayDelayAck(const ShimFlow& flow);
  Duration legWait(const ShimFlow& flow) const;

  const AckShimOptions& options_;
  TrackedFlows& flows_;
  TailCache& cache_;
  ShimOutbox& outbox_;
  ShimCounters& counters_;
};

}  // namespace braid
