#include "scheduler/rate/wan_burst.h"

#include <algorithm>
#include <utility>

namespace braid {

void WanBurst::begin(Duration target, Time now) {
  judge(target, now);
  seen_ = {};
  rounds_ = 0;
  running_ = true;
}

// The ACK of the last packets may be held back, which is no queue.
void WanBurst::onAck(const AckSample& ack, Duration base) {
  if (!running_) return;
  seen_.acked += static_cast<double>(ack.bytes);
  seen_.marked |= ack.marks > 0;
  if (ack.rtt <= Duration{}) return;
  seen_.queues += std::max(ack.rtt - ack.delay - base, Duration{});
  ++seen_.samples;
}

void WanBurst::onLoss(const LossSample& loss) {
  if (!running_) return;
  seen_.lost += static_cast<double>(loss.bytes);
  seen_.packets += loss.packets;
}

void WanBurst::onRound(Duration target, Time now) {
  if (running_ && ++rounds_ == 2) judge(target, now);
}

void WanBurst::judge(Duration target, Time now) {
  if (!std::exchange(running_, false) || seen_.samples == 0) return;
  double atOnce = std::min(seen_.sent(), size_);
  if (!isClean(target)) {
    size_ = std::max(atOnce / 2, least_);
    tooLarge_ = atOnce;
    mayGrow_ = now + patience_;
    patience_ = std::min(patience_ * 2, kMostPatience);
    return;
  }
  usualLoss_ += kLossGain * (seen_.lost / seen_.sent() - usualLoss_);
  if (atOnce >= tooLarge_) patience_ = kPatience;
  if (now >= mayGrow_) size_ = std::max(size_, 2 * atOnce);
}

bool WanBurst::isClean(Duration target) const {
  bool lossy = seen_.packets > 1 && seen_.lost > (usualLoss_ + kLossy) * seen_.sent();
  return !seen_.marked && !lossy && seen_.queues / seen_.samples <= target / 2;
}

}  // namespace braid
