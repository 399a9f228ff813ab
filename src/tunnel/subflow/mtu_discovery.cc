#include "tunnel/subflow/mtu_discovery.h"

#include <algorithm>

namespace braid {

MtuDiscovery::MtuDiscovery(size_t max, size_t fixed)
    : max_(std::max(max, kMinDatagram)),
      fixed_(fixed),
      current_(fixed ? fixed : kMinDatagram),
      low_(current_),
      high_(max_) {}

size_t MtuDiscovery::candidate() const {
  if (tryHigh_) return high_;
  if (low_ < kBaseDatagram && kBaseDatagram <= high_) return kBaseDatagram;
  return (low_ + high_ + 1) / 2;
}

size_t MtuDiscovery::pollProbe() const {
  if (fixed_ || probing_ || !searching()) return 0;
  return candidate();
}

void MtuDiscovery::onProbeSent(size_t size, Duration timeout, Time now) {
  probing_ = size;
  timers_.set(Timer::kProbe, now + timeout);
}

void MtuDiscovery::onProbeAcked(size_t size, Time now) {
  if (fixed_) return;
  if (size > current_ && size <= high_) current_ = low_ = size;
  if (size != probing_) return;
  probing_ = 0;
  failures_ = 0;
  tryHigh_ = false;
  timers_.stop(Timer::kProbe);
  if (!searching()) timers_.set(Timer::kRaise, current_ < max_ ? now + kRaiseInterval : kNever);
}

void MtuDiscovery::onProbeLost(size_t size, Time now) {
  if (size == probing_) probeFailed(now);
}

void MtuDiscovery::probeFailed(Time now) {
  size_t size = probing_;
  probing_ = 0;
  timers_.stop(Timer::kProbe);
  if (++failures_ < kMaxProbes) return;
  failures_ = 0;
  tryHigh_ = false;
  high_ = size - 1;
  if (!searching()) timers_.set(Timer::kRaise, now + kRaiseInterval);
}

void MtuDiscovery::onAcked(size_t size) {
  if (size <= kMinDatagram) {
    if (fullSizeLosses_ > 0) ++smallArrivals_;
  } else if (size + kPrecision >= current_) {
    fullSizeLosses_ = smallArrivals_ = 0;
  }
}

void MtuDiscovery::onLost(size_t size, Time sentAt) {
  if (fixed_ || size <= kMinDatagram) return;
  if (sentAt < upSince_ && silentLosses_++ >= kSilentLosses) return;
  ++fullSizeLosses_;
  if (fullSizeLosses_ >= kBlackHoleLosses && smallArrivals_ >= kBlackHoleArrivals) search();
}

void MtuDiscovery::onTooBig(size_t size, Time now) {
  if (fixed_ || size <= kMinDatagram) return;
  if (size == probing_) {
    failures_ = kMaxProbes;
    return probeFailed(now);
  }
  if (size <= current_) search();
}

void MtuDiscovery::setLimit(size_t largest) {
  largest = std::max(largest, kMinDatagram);
  max_ = std::min(max_, largest);
  high_ = std::min(high_, largest);
  current_ = std::min(current_, largest);
  low_ = std::min(low_, current_);
  if (fixed_) fixed_ = current_;
  if (probing_ <= largest) return;
  probing_ = 0;
  failures_ = 0;
  timers_.stop(Timer::kProbe);
}

void MtuDiscovery::restart() {
  if (!fixed_) search();
}

void MtuDiscovery::search() {
  current_ = low_ = kMinDatagram;
  high_ = max_;
  tryHigh_ = true;
  probing_ = 0;
  failures_ = fullSizeLosses_ = smallArrivals_ = 0;
  timers_.stopAll();
}

void MtuDiscovery::onTimer(Time now) {
  if (timers_.isDue(Timer::kProbe, now)) probeFailed(now);
  if (timers_.isDue(Timer::kRaise, now)) {
    timers_.stop(Timer::kRaise);
    high_ = max_;
    tryHigh_ = true;
  }
}

}  // namespace braid
