#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "inet/datagram_sign.h"

namespace braid {

/// What the sender knows of a packet beyond its flow key.
struct PacketHint {
  uint8_t recoveryClass = 0;                ///< 0: none, else 1 + index; that of a flow's first packet stays
  bool fin = false;                         ///< the sender says that nothing follows
  bool push = false;                        ///< or that nothing follows at once, which bulk senders say often
  DatagramSign sign = DatagramSign::kNone;  ///< what a datagram says of its flow
};

/// What a flow has queued since it last was quiet: tells a request or the frame of a call from bulk. The lane
/// alone writes it, packet by packet.
class FlowBurst {
 public:
  /// A flow that queues nothing for so long begins a new burst. Ours: shorter than the frames of a call are
  /// apart, longer than the gaps of a bulk sender that waits for ACKs.
  static constexpr Duration kGap = 10ms;
  /// Bytes of a burst up to which a flow is a short one: latency-sensitive in FUSO section VI-B.
  static constexpr uint64_t kShort = 100'000;
  /// Bytes of a burst up to which a flow may go ahead of bulk: four full packets. Ours.
  static constexpr uint64_t kSmall = 6000;

  uint64_t bytes() const { return bytes_; }
  bool isShort() const { return bytes_ <= kShort; }
  bool isSmall() const { return bytes_ <= kSmall; }
  /// By its last packet nothing follows, or not at once: FIN, PSH in a short burst, the end of a stream, or a lone
  /// datagram (a call, a query).
  bool ended() const { return ended_; }

 private:
  friend class PacketLane;
  friend class StreamSending;
  friend class Flow;

  /// A packet is queued, this long after the one before it. `waits`: packets of the flow wait here, so that its
  /// sender was not quiet.
  void onPacket(size_t size, bool reliable, const PacketHint& hint, Duration quiet, bool waits) {
    if (!waits && quiet >= kGap) bytes_ = 0;
    bytes_ += size;
    ended_ = hint.fin || (hint.push && isShort()) || (!reliable && bytes_ == size);
  }

  /// Nothing follows what is queued, however long the burst was.
  void onEnd() { ended_ = true; }

  uint64_t bytes_ = 0;
  bool ended_ = false;
};

}  // namespace braid
