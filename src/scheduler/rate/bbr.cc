#include "scheduler/rate/bbr.h"

#include <algorithm>

namespace braid {

Bbr::Bbr(uint64_t datagram, uint64_t initial)
    : datagram_(datagram), initial_(initial), window_(static_cast<double>(initial * datagram)) {}

void Bbr::reset(Time) {
  *this = Bbr(datagram_, initial_);
}

void Bbr::onAck(const AckSample& ack) {
  srtt_ = ack.srtt;
  if (ack.minRtt > Duration{}) minRtt_ = ack.minRtt;
  ackedInRound_ += static_cast<double>(ack.bytes);
  if (ack.rtt > Duration{}) {
    roundRtt_ = std::min(roundRtt_, ack.rtt);
    ++roundSamples_;
  }
  bool newRound = ack.priorDelivered >= roundEnd_;
  if (newRound) {
    roundEnd_ = ack.delivered;
    maxima_[++round_ % kBandwidthRounds] = 0;
  }
  updateBandwidth(ack);
  if (newRound) onRound();
  advance(ack);

  double gain = state_ == State::kProbe ? kWindowGain : kStartupGain;
  double target = gain * bdp() + bandwidth_ * toSeconds(kAckClump) + 3 * static_cast<double>(datagram_);
  if (bandwidth_ == 0) target = window_;
  window_ += static_cast<double>(ack.bytes);
  if (state_ != State::kStartup || window_ > 2 * target) window_ = std::min(window_, target);
}

// A rate that the sender limited says only that the path gives at least as much (section 4.1.1.4).
void Bbr::updateBandwidth(const AckSample& ack) {
  if (ack.deliveryRate <= 0) return;
  roundLimited_ |= ack.appLimited;
  if (ack.appLimited && ack.deliveryRate < bandwidth_) {
    double& last = maxima_[round_ % kBandwidthRounds];
    last = std::max(last, bandwidth_);  // nothing new was learnt: the old maximum must not age
    return;
  }
  double& maximum = maxima_[round_ % kBandwidthRounds];
  maximum = std::max(maximum, ack.deliveryRate);
  bandwidth_ = *std::max_element(maxima_.begin(), maxima_.end());
}

void Bbr::onRound() {
  if (state_ == State::kStartup && !roundLimited_) {
    if (bandwidth_ >= fullBandwidth_ * kFullGrowth) {
      fullBandwidth_ = bandwidth_;
      fullRounds_ = 0;
    } else {
      ++fullRounds_;
    }
  }
  Duration queueing = std::clamp<Duration>(minRtt_ / 8, kMinQueue, kMaxQueue);
  if (roundSamples_ >= kRoundSamples && roundRtt_ >= minRtt_ + queueing) fullRounds_ = kFullRounds;
  roundRtt_ = Duration::max();
  roundSamples_ = 0;
  roundLimited_ = false;
  double all = lostInRound_ + ackedInRound_;
  double share = all > 0 ? lostInRound_ / all : 0;
  bool queue = srtt_ > fromSeconds(toSeconds(minRtt_) * kQueueRtt);
  bool several = lostInRound_ > 2 * static_cast<double>(datagram_);
  bool congested = markedInRound_ || (several && share > (queue ? kQueueLoss : kPolicerLoss));
  if (congested) bound();
  lostInRound_ = ackedInRound_ = 0;
  markedInRound_ = false;
}

// Never below one bandwidth-delay product: with that in flight and no queue the path is just full.
void Bbr::bound() {
  if (state_ == State::kStartup) fullRounds_ = kFullRounds;
  double now = std::min(bound_, window_);
  bound_ = std::max({now * kBackoff, bdp(), static_cast<double>(kMinDatagrams * datagram_)});
}

void Bbr::advance(const AckSample& ack) {
  auto inFlight = static_cast<double>(ack.inFlight);
  switch (state_) {
    case State::kStartup:
      if (fullRounds_ < kFullRounds) return;
      state_ = State::kDrain;
      gain_ = kDrainGain;
      [[fallthrough]];
    case State::kDrain:
      if (inFlight > bdp()) return;
      state_ = State::kProbe;
      return beginTurn(2, ack.now);  // not with a probe: the start was one
    case State::kProbe: {
      Duration lasted = ack.now - turnBegan_;
      double clump = bandwidth_ * toSeconds(kAckClump) / 2;  // on average waits for an ACK, not in a queue
      bool over = lasted > minRtt_;
      if (gain_ > 1 && inFlight < gain_ * bdp() && lostInRound_ == 0) over = lasted > 2 * minRtt_;
      if (gain_ < 1) over = inFlight <= bdp() + clump || lasted > kMaxDrain * minRtt_;
      if (over) beginTurn((turn_ + 1) % kGains.size(), ack.now);
    }
  }
}

void Bbr::beginTurn(size_t turn, Time now) {
  turn_ = turn;
  turnBegan_ = now;
  gain_ = kGains[turn];
  if (gain_ > 1 && bound_ < kUnbounded) bound_ *= gain_;  // see whether there is room again
  if (bound_ > 4 * std::max(bdp(), static_cast<double>(initialWindow()))) bound_ = kUnbounded;
}

void Bbr::onLoss(const LossSample& loss) {
  lostInRound_ += static_cast<double>(loss.bytes);
  if (!loss.persistent) return;
  window_ = static_cast<double>(kMinDatagrams * datagram_);
}

void Bbr::onMarks(uint64_t marks, Time, Time) {
  markedInRound_ |= marks > 0;
}

uint64_t Bbr::window() const {
  return static_cast<uint64_t>(
      std::max(std::min(window_, bound_), static_cast<double>(kMinDatagrams * datagram_)));
}

double Bbr::pacingRate() const {
  if (srtt_ <= Duration{}) return std::numeric_limits<double>::infinity();
  if (bandwidth_ == 0) return kStartupGain * window_ / toSeconds(srtt_);
  return kPacingMargin * gain_ * bandwidth_;
}

}  // namespace braid
