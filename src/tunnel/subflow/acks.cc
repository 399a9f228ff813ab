#include "tunnel/subflow/acks.h"

#include <algorithm>

#include "tunnel/subflow/in_flight.h"

namespace braid {

void AckSender::onPacket(PacketNumber pn, bool eliciting, Ecn ecn, Duration rtt, Time now) {
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

AckFrame AckSender::frame(SubflowId subflow, Time now) const {
  AckFrame ack;
  ack.subflow = subflow;
  ack.delay = std::chrono::duration_cast<std::chrono::microseconds>(now - largestAt_);
  ack.ecn = ecn_;
  received_.fill(ack);
  return ack;
}

void AckSender::onSent() {
  pending_ = 0;
  immediate_ = tellsLoss_ = false;
  deadline_ = kNever;
}

}  // namespace braid
