#pragma once

#include <cstdint>

#include "base/time.h"
#include "inet/endpoint.h"
#include "tunnel/subflow/sent_packets.h"
#include "tunnel/wire/ack_ranges.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/replay_window.h"

namespace braid {

/// What arrived on one subflow, and when to tell the sender (RFC 9000 section 13.2).
///
/// onPacket() takes note of each packet; once due(), or whenever a datagram leaves anyway and something is
/// pending(), frame() goes out and onSent() follows. Packets are reported again by later ACKs, as far as the
/// ranges reach.
class AckSender {
 public:
  /// An ACK goes out at once after so many packets that ask for one. RFC 9000 section 13.2.2 says two; eight
  /// save most of the cost of the way back, and the sender's pacing does not depend on the ACK clock.
  static constexpr unsigned kAckEvery = 8;

  /// Part of the RTT that an ACK may be late: on a fabric of some hundred microseconds kMaxAckDelay would be
  /// many round trips. Ours; RFC 9000 section 13.2.1 leaves it to the receiver.
  static constexpr int kDelaysPerRtt = 4;

  /// Numbers so far behind the largest are not reported any more: as far as a sender of ours remembers, so that
  /// every ACK has what counts. Numbers that the sender left out would else be holes in every ACK. Ours.
  static constexpr uint64_t kReach = SentPackets::kMaxSpan;

  /// A new packet was opened. `eliciting`: it asks for an ACK. `rtt`: of the path, kMaxAckDelay or more when
  /// not known.
  void onPacket(PacketNumber pn, bool eliciting, Ecn ecn, Duration rtt, Time now);
  /// An ACK should go now, even alone in its datagram.
  bool due(Time now) const { return pending_ > 0 && (immediate_ || now >= deadline_); }
  /// A packet came that the sender has not been told of: worth a place in a datagram that goes anyway.
  bool pending() const { return pending_ > 0; }
  /// The next ACK shows the sender that a packet is lost (RFC 9002 section 6.1.1): worth the fastest way
  /// back, for a flow waits for that packet.
  bool tellsLoss() const { return tellsLoss_; }
  /// From when on due() holds; kNever when nothing is pending.
  Time deadline() const { return pending_ == 0 ? kNever : immediate_ ? Time::min() : deadline_; }
  /// The ACK to send for subflow number `subflow`. The caller calls onSent() when it is on its way.
  AckFrame frame(SubflowId subflow, Time now) const;
  void onSent();
  /// The packet number after the largest one seen.
  PacketNumber expected() const { return expected_; }

 private:
  AckRanges received_;
  EcnCounts ecn_;
  PacketNumber expected_{};
  Time largestAt_;
  Time deadline_ = kNever;
  unsigned pending_ = 0;
  bool immediate_ = false;
  bool tellsLoss_ = false;
  static constexpr PacketNumber kNoLoss{UINT64_MAX};
  PacketNumber lostFrom_ = kNoLoss;  ///< the least number whose arrival shows that a missing packet is lost
};

}  // namespace braid
