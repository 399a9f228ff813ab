#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "inet/addresses.h"
#include "tunnel/subflow/in_flight.h"
#include "tunnel/subflow/sent_map.h"
#include "tunnel/subflow/subflow_status.h"
#include "tunnel/wire/frame_payloads.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/key_ring.h"

namespace braid {

/// Decides what to acknowledge on one subflow, and when to send the ACK (RFC 9000 section 13.2).
///
/// Call onPacket() for each received packet. Send frame() once due(), or earlier when a datagram
/// leaves anyway while pending(); then call onSent(). Later ACKs report the same packets again, as
/// far back as the ranges reach.
class AckSender {
 public:
  /// An ACK is sent at once after this many ack-eliciting packets. RFC 9000 section 13.2.2 says 2.
  /// 8 saves most of the cost of the reverse direction, and the sender's pacing does not depend on
  /// the ACK clock.
  static constexpr unsigned kAckEvery = 8;

  /// An ACK is delayed by at most 1/kDelaysPerRtt of the RTT, and by at most kMaxAckDelay: on a
  /// fabric with an RTT of some hundred microseconds, kMaxAckDelay would be many round trips. RFC
  /// 9000 section 13.2.1 leaves the delay to the receiver.
  static constexpr int kDelaysPerRtt = 4;

  /// Packet numbers kReach or more below the largest one are not reported any more. This is as far
  /// back as our sender remembers packets, so every ACK still holds all that matters to it. Without
  /// this limit, numbers that the sender skipped (PacketNumberFilter) would stay as holes in every
  /// ACK.
  static constexpr uint64_t kReach = SentPackets::kMaxSpan;

  /// A new packet was opened. `eliciting`: it is ack-eliciting. `rtt`: of the path; kMaxAckDelay or
  /// more when it is not known.
  void onPacket(PacketNumber pn, bool eliciting, Ecn ecn, Duration rtt, Time now);
  /// The peer wants to know when its packets were received.
  void tellTimes() { tellsTimes_ = true; }
  /// An ACK should be sent now, even alone in its datagram.
  bool due(Time now) const { return pending_ > 0 && (immediate_ || now >= deadline_); }
  /// An ack-eliciting packet came that no ACK has reported yet: an ACK should be added to any
  /// datagram that leaves anyway.
  bool pending() const { return pending_ > 0; }
  /// The next ACK shows the sender that a packet is lost (RFC 9002 section 6.1.1). It should take
  /// the fastest path back, because a flow waits for that packet.
  bool tellsLoss() const { return tellsLoss_; }
  /// When due() becomes true; kNever when nothing is pending.
  Time deadline() const { return pending_ == 0 ? kNever : immediate_ ? Time::min() : deadline_; }
  /// The ACK to send for subflow number `subflow`. The caller calls onSent() once it is in a
  /// datagram.
  AckFrame frame(SubflowId subflow, Time now) const;
  void onSent();
  /// The packet number after the largest one seen.
  PacketNumber expected() const { return expected_; }

 private:
  AckRanges received_;
  EcnCounts ecn_;
  PacketNumber expected_{};
  Time largestAt_;
  bool tellsTimes_ = false;
  Time deadline_ = kNever;
  unsigned pending_ = 0;
  bool immediate_ = false;
  bool tellsLoss_ = false;
  static constexpr PacketNumber kNoLoss{UINT64_MAX};
  /// The least packet number whose arrival lets the sender declare a missing packet lost.
  PacketNumber lostFrom_ = kNoLoss;
};

/// The receiving side of one subflow: which packet numbers are new, what is to be acknowledged, and
/// how much arrived.
class SubflowReceiver {
 public:
  bool isReplay(PacketNumber pn) const { return !replay_.check(pn); }
  /// The packet number after the largest one received.
  PacketNumber expected() const { return acks_.expected(); }

  /// A datagram of `bytes` with a new packet number was opened and all its frames were understood.
  /// `eliciting` and `rtt` as in AckSender. Returns true when no packet with a larger number came
  /// before.
  bool onPacket(PacketNumber pn, bool eliciting, Ecn ecn, size_t bytes, Duration rtt, Time now) {
    bool isNewest = pn >= expected();
    replay_.commit(pn);
    acks_.onPacket(pn, eliciting, ecn, rtt, now);
    ++counts_.receivedPackets;
    counts_.receivedBytes += bytes;
    return isNewest;
  }
  /// A datagram was opened, but a frame in it was malformed. It is not acknowledged, and a second
  /// one with this number is refused as a replay.
  void onMalformed(PacketNumber pn) { replay_.commit(pn); }

  AckSender& acks() { return acks_; }
  const AckSender& acks() const { return acks_; }
  const ReceiveCounts& counts() const { return counts_; }

 private:
  ReplayWindow replay_;
  AckSender acks_;
  ReceiveCounts counts_;
};

inline void AckSender::onPacket(PacketNumber pn, bool eliciting, Ecn ecn, Duration rtt, Time now) {
  bool inOrder = pn == expected_;
  if (pn > expected_) lostFrom_ = std::min(lostFrom_, pn - 1 + LossDetector::kPacketThreshold);
  if (pn >= expected_) {
    expected_ = pn + 1;
    largestAt_ = now;
  }
  received_.add(pn);
  if (expected_ > PacketNumber(kReach)) received_.dropBelow(expected_ - kReach);
  switch (ecn) {
    case Ecn::kEct0:
      ++ecn_.ect0;
      break;
    case Ecn::kEct1:
      ++ecn_.ect1;
      break;
    case Ecn::kCe:
      ++ecn_.ce;
      break;
    case Ecn::kNotEct:
      break;
  }
  if (!eliciting) return;
  if (pending_++ == 0) deadline_ = now + std::min<Duration>(kMaxAckDelay, rtt / kDelaysPerRtt);
  if (pn >= lostFrom_) {
    lostFrom_ = kNoLoss;
    immediate_ = tellsLoss_ = true;
  }
  if (!inOrder || ecn == Ecn::kCe || pending_ >= kAckEvery) immediate_ = true;
}

inline AckFrame AckSender::frame(SubflowId subflow, Time now) const {
  AckFrame ack;
  ack.subflow = subflow;
  using Micros = std::chrono::microseconds;
  ack.delay = std::chrono::duration_cast<Micros>(now - largestAt_);
  if (tellsTimes_) {
    auto micros = std::chrono::floor<Micros>(largestAt_.time_since_epoch()).count();
    ack.received = {static_cast<uint32_t>(micros) % ReceiveTime::kModulus, false};
  }
  ack.ecn = ecn_;
  received_.fill(ack);
  return ack;
}

inline void AckSender::onSent() {
  pending_ = 0;
  immediate_ = tellsLoss_ = false;
  deadline_ = kNever;
}

}  // namespace braid
