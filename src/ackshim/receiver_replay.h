#pragma once

#include "ackshim/counters.h"
#include "ackshim/flow_table.h"
#include "ackshim/options.h"
#include "ackshim/outbox.h"
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

}  // namespace braid
