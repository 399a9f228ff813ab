#include "scheduler/rate/wan_burst.h"

#include <algorithm>
#include <utility>

namespace braid {

void WanBurst::begin(Duration target, Time now) {
  judge(target, now);
  seen_ = {};
  rounds_ = 0;
  isFresh_ = isRunning_ = true;
}

// What is paced comes after what went at once, and may queue or be lost by itself. The ACK of the last packets may be
// held back, which is no queue.
void WanBurst::onAck(const AckSample& ack, Duration base) {
  isFresh_ = false;
  if (!isWatched()) return;
  seen_.acked += static_cast<double>(ack.bytes);
  seen_.marked |= ack.marks > 0;
  if (ack.rtt <= Duration{}) return;
  seen_.queues += std::max(ack.rtt - ack.delay - base, Duration{});
  ++seen_.samples;
}

void WanBurst::onLoss(const LossSample& loss) {
  if (isWatched()) seen_.lost += static_cast<double>(loss.bytes);
}

void WanBurst::onRound(Duration target, Time now) {
  if (isRunning_ && ++rounds_ == 2) judge(target, now);
}

void WanBurst::judge(Duration target, Time now) {
  if (!std::exchange(isRunning_, false) || seen_.samples == 0) return;
  double atOnce = std::min(seen_.sent(), size_);
  bool isClean = this->isClean(target);
  if (atOnce <= least_) {
    usualSent_ += seen_.sent();
    usualLost_ += seen_.lost;
    if (usualSent_ > kLossMemory) {
      usualSent_ /= 2;
      usualLost_ /= 2;
    }
  }
  if (isClean) {
    if (atOnce >= tooLarge_) patience_ = kPatience;
    if (now >= mayGrow_) size_ = std::max(size_, 2 * atOnce);
  } else if (atOnce > least_) {
    size_ = std::max(atOnce / 2, least_);
    tooLarge_ = atOnce;
    mayGrow_ = now + patience_;
    patience_ = std::min(patience_ * 2, kMostPatience);
  }
}

bool WanBurst::isClean(Duration target) const {
  bool lossy = seen_.lost > (usualLoss() + kLossy) * seen_.sent();
  return !seen_.marked && !lossy && seen_.queues / seen_.samples <= target / 2;
}

double WanBurst::usualLoss() const {
  return usualLost_ / std::max(usualSent_, kLossMemory / 10);
}

}  // namespace braid
