#include "scheduler/rate/wan_path.h"

#include <algorithm>

namespace braid {

void WanPath::onAck(const AckSample& ack, bool competing) {
  srtt_ = ack.srtt;
  if (ack.rtt <= Duration{}) return;
  Duration life = competing ? kBaseLifeCompeting : kBaseLife;
  if (base_ == Duration{} || ack.rtt < base_) {
    base_ = ack.rtt;
  } else if (ack.now - baseSeen_ > life) {
    base_ = ack.minRtt;
  }
  if (ack.rtt <= base_ + base_ / kNear) baseSeen_ = ack.now;
}

void WanPath::onRound(const WanRound& round, Time now, Rate says) {
  double seconds = toSeconds(now - round.began);
  arrived_ = seconds > 0 ? round.acked / seconds : 0;
  if (says == Rate::kAll) rate_ = (rate_ + arrived_) / 2;
  if (says == Rate::kAtLeast) rate_ = std::max(rate_, arrived_);
  highest_ = std::max(rate_, highest_ * (1 - std::min(seconds / toSeconds(kRateLife), 1.0)));
  queue_ = std::max<Duration>(round.rtt - base_, Duration{});
  double sent = round.sent();
  loss_ += kLossGain * ((sent > 0 ? round.lost / sent : 0) - loss_);
}

}  // namespace braid
