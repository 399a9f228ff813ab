#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "inet/datagram_sign.h"
#include "tunnel/lane/delivery.h"

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
  /// A flow that queues nothing for this long begins a new burst. Ours: shorter than the frames of a call are
  /// apart, longer than the gaps of a bulk sender that waits for ACKs.
  static constexpr Duration kGap = 10ms;
  /// Bytes that the burst of a timely flow forgets in kGap: a full packet, as a flow of one packet each kGap does. So a
  /// call stays small however densely its packets come, up to 1.2 Mbit/s. Ours.
  static constexpr uint64_t kForgottenInGap = 1500;
  /// Bytes of a burst up to which a flow is a short one: latency-sensitive in FUSO section VI-B.
  static constexpr uint64_t kShort = 100'000;
  /// Bytes of a burst up to which a flow may go ahead of bulk: four full packets. Ours.
  static constexpr uint64_t kSmall = 6000;

  uint64_t bytes() const { return bytes_; }
  bool isShort() const { return bytes_ <= kShort; }
  bool isSmall() const { return bytes_ <= kSmall; }
  /// Nothing follows the last packet, or not at once: FIN, PSH in a short burst, the end of a stream, or a lone
  /// datagram. Of a short burst of timely datagrams each may be the last one: nothing that follows repairs it.
  bool ended() const { return ended_; }

 private:
  friend class PacketLane;
  friend class StreamSending;
  friend class Flow;

  /// A packet is queued, this long after the one before it. `waits`: packets of the flow wait here, so that its
  /// sender was not quiet.
  void onPacket(size_t size, Delivery delivery, const PacketHint& hint, Duration quiet, bool waits) {
    bool isTimely = delivery == Delivery::kTimely;
    if (!waits && quiet >= kGap) {
      bytes_ = 0;
    } else if (isTimely) {
      auto forgotten = static_cast<uint64_t>(kForgottenInGap * std::min<Duration>(quiet, kGap) / kGap);
      bytes_ -= std::min(bytes_, forgotten);
    }
    bytes_ += size;
    bool isLoneDatagram = delivery == Delivery::kOrdered && bytes_ == size;
    ended_ = hint.fin || isLoneDatagram || ((hint.push || isTimely) && isShort());
  }

  /// Nothing follows what is queued, however long the burst was.
  void onEnd() { ended_ = true; }

  uint64_t bytes_ = 0;
  bool ended_ = false;
};

}  // namespace braid
