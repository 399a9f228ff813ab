#pragma once

#include <span>

#include "ackshim/flow_table.h"
#include "ackshim/options.h"
#include "ackshim/segment.h"
#include "base/random.h"

namespace braid {

/// Serves the local host as a sender: decides when to tell it of a loss, and how (docs/ackshim.md,
/// "When to speak to a sender" and "How to speak"). "To speak" means to send it duplicate ACKs, or
/// to resend a segment for it.
class SenderWakeup {
 public:
  /// All arguments except `random`, which draws the waits, must outlive this. `tunnel` may be
  /// nullptr.
  SenderWakeup(const AckShimOptions& options, TrackedFlows& flows, ShimOutbox& outbox,
               ShimCounters& counters, const FlowActivityQuery* tunnel, Random random)
      : options_(options),
        flows_(flows),
        cache_(flows.cache()),
        outbox_(outbox),
        counters_(counters),
        tunnel_(tunnel),
        random_(random) {}

  /// The host's segment `s` arrived. `data`: what TcpDirection::onData() returned for it; `before`:
  /// the state of that direction before it.
  void onSent(uint32_t i, ByteView packet, const TcpSegment& s, TcpDirection::Data data,
              const TcpDirection::Before& before);
  /// The peer's segment `s` is about to be sent to the host. `ack`: what TcpDirection::onAck()
  /// returned for it. False: drop the segment.
  bool onPeerAck(uint32_t i, const TcpSegment& s, TcpDirection::Ack ack);
  /// The tunnel dropped this segment of the host and will not deliver it.
  void onDropped(uint32_t i, ByteView packet, const TcpSegment& s);
  /// A RST came that may be real. The recovery state is cleared, so that the other end's challenge
  /// ACK is not dropped.
  void onDoubt(ShimFlow& flow) { flow.tracks = {}; }
  /// Does what is due. Returns the time until something is due again; TracksTimer::kNothing when
  /// nothing is due until a packet arrives.
  Duration onTimer(ShimFlow& flow);

 private:
  static constexpr Duration kNothing = TracksTimer::kNothing;

  // State of the host's data
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
  const FlowActivityQuery* tunnel_;
  Random random_;
};

}  // namespace braid
