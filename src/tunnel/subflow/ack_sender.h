#pragma once

#include <cstdint>

#include "base/time.h"
#include "inet/endpoint.h"
#include "tunnel/wire/ack_ranges.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// What arrived on one subflow, and when to tell the sender (RFC 9000 section 13.2).
class AckSender {
 public:
  /// An ACK goes out at once after so many packets that ask for one. RFC 9000 section 13.2.2 says two; eight
  /// save most of the cost of the way back, and the sender's pacing does not depend on the ACK clock.
  static constexpr unsigned kAckEvery = 8;

  /// Part of the RTT that an ACK may be late: on a fabric of some hundred microseconds kMaxAckDelay would be
  /// many round trips. Ours; RFC 9000 section 13.2.1 leaves it to the receiver.
  static constexpr int kDelaysPerRtt = 4;

  /// A new packet was opened. `eliciting`: it asks for an ACK. `rtt`: of the path, kMaxAckDelay or more when
  /// not known.
  void onPacket(uint64_t pn, bool eliciting, Ecn ecn, Duration rtt, Time now);
  /// An ACK should go now, even alone in its datagram.
  bool due(Time now) const { return pending_ > 0 && (immediate_ || now >= deadline_); }
  /// There is something the sender does not know: worth a place in a datagram that goes anyway.
  bool pending() const { return pending_ > 0; }
  /// It tells of a packet that the sender now takes for lost (RFC 9002 section 6.1.1): worth the fastest way
  /// back, for a flow waits for that packet.
  bool tellsLoss() const { return tellsLoss_; }
  Time deadline() const { return pending_ == 0 ? kNever : immediate_ ? Time::min() : deadline_; }
  /// What to say. The caller calls onSent() when it did.
  AckFrame frame(uint8_t subflow, Time now) const;
  void onSent();
  /// The packet number after the largest one seen.
  uint64_t expected() const { return expected_; }
  uint64_t ceMarks() const { return ecn_.ce; }

 private:
  AckRanges received_;
  EcnCounts ecn_;
  uint64_t expected_ = 0;
  Time largestAt_;
  Time deadline_ = kNever;
  unsigned pending_ = 0;
  bool immediate_ = false;
  bool tellsLoss_ = false;
  uint64_t lostFrom_ = UINT64_MAX;  // the number that shows that the one missing is lost
};

}  // namespace braid
