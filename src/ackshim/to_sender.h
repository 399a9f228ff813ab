#pragma once

#include <span>

#include "ackshim/counters.h"
#include "ackshim/options.h"
#include "ackshim/outbox.h"
#include "ackshim/segment.h"
#include "ackshim/tracked_flows.h"
#include "ackshim/tunnel_knowledge.h"
#include "base/random.h"

namespace braid {

/// The local host as a sender: when it is told of a loss, and how (docs/ackshim.md, "When to speak to a
/// sender" and "How to speak").
class ToSender {
 public:
  /// All must outlive it but `random`, which draws the waits; `tunnel` may be nullptr.
  ToSender(const AckShimOptions& options, TrackedFlows& flows, ShimOutbox& outbox, ShimCounters& counters,
           const TunnelKnowledge* tunnel, Random random)
      : options_(options),
        flows_(flows),
        cache_(flows.cache()),
        outbox_(outbox),
        counters_(counters),
        tunnel_(tunnel),
        random_(random) {}

  /// The host's segment `s` came; `data` is what the flow's half made of it, `before` the half before it.
  void onSent(uint32_t i, ByteView packet, const TcpSegment& s, Half::Data data, const Half::Before& before);
  /// The peer's segment `s` goes to the host; `ack` is what the half made of it. False: the host is not to
  /// see it.
  bool onPeerAck(uint32_t i, const TcpSegment& s, Half::Ack ack);
  /// The tunnel dropped this segment of the host for good.
  void onDropped(uint32_t i, ByteView packet, const TcpSegment& s);
  /// A RST came that may be real: the other end's challenge ACK must come through.
  void onDoubt(ShimFlow& flow) { flow.tracks = {}; }
  /// Does what is due. The time until something is due again; Tracks::kNothing when only packets change that.
  Duration onTimer(ShimFlow& flow);

 private:
  static constexpr Duration kNothing = Tracks::kNothing;

  // What is known of the host's data
  void onArrived(ShimFlow& flow, SeqRange range, Seq before);
  bool hasHole(const ShimFlow& flow);
  void keep(ShimFlow& flow, ByteView packet, SeqRange range);
  void keepAgain(ShimFlow& flow, ByteView packet, SeqRange range);
  void armLook(uint32_t i);
  // The occasions to speak
  Duration tellHole(ShimFlow& flow);
  Duration replayDropped(ShimFlow& flow);
  void speak(ShimFlow& flow, uint8_t acks);
  // The ways to speak
  void onFired(ShimFlow& flow, Actuator actuator, Seq at, bool sent);
  void sendAcks(ShimFlow& flow, uint8_t count, std::span<const SeqRange> sacks);

  const AckShimOptions& options_;
  TrackedFlows& flows_;
  TailCache& cache_;
  ShimOutbox& outbox_;
  ShimCounters& counters_;
  const TunnelKnowledge* tunnel_;
  Random random_;
};

}  // namespace braid
