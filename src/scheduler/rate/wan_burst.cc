#include "scheduler/rate/wan_burst.h"

#include <algorithm>
#include <utility>

#include "scheduler/rate/wan_model.h"

namespace braid {

void WanBurst::begin(Duration target, Time now) {
  judge(target, now);
  seen_ = {};
  rounds_ = 0;
  isUnacked_ = isRunning_ = true;
}

// Only the bytes that were sent at once count (isWatched()). Packets that were paced come after
// them, and may queue or be lost for another reason. The peer's ACK delay is subtracted: it is not
// a queue.
void WanBurst::onAck(const AckSample& ack, Duration base) {
  isUnacked_ = false;
  if (!isWatched()) return;
  seen_.acked += static_cast<double>(ack.bytes);
  seen_.marked |= ack.marks > 0;
  if (ack.rtt <= Duration{}) return;
  Duration queue = std::max(ack.rtt - ack.delay - base, Duration{});
  seen_.queues += ack.queues ? queueOf(queue, *ack.queues) : queue;
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
    if (usualSent_ > kUsualLossMemory) {
      usualSent_ /= 2;
      usualLost_ /= 2;
    }
  }
  if (isClean) {
    if (atOnce >= tooLarge_) growthPause_ = kGrowthPause;
    if (now >= mayGrowAt_) size_ = std::max(size_, 2 * atOnce);
  } else if (atOnce > least_) {
    size_ = std::max(atOnce / 2, least_);
    tooLarge_ = atOnce;
    mayGrowAt_ = now + growthPause_;
    growthPause_ = std::min(growthPause_ * 2, kMaxGrowthPause);
  }
}

bool WanBurst::isClean(Duration target) const {
  bool lossy = seen_.lost > (usualLoss() + kMaxExtraLoss) * seen_.sent();
  return !seen_.marked && !lossy && seen_.queues / seen_.samples <= target / 2;
}

double WanBurst::usualLoss() const {
  return usualLost_ / std::max(usualSent_, kUsualLossMemory / 10);
}

}  // namespace braid
