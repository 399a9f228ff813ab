#include "scheduler/rate/rivals/bbr.h"

#include <algorithm>
#include <limits>

namespace braid {

bool BbrBound::onRound(Duration srtt, Duration minRtt, double window, double least) {
  double all = lost_ + acked_;
  double share = all > 0 ? lost_ / all : 0;
  bool queue = srtt > fromSeconds(toSeconds(minRtt) * kQueueRtt);
  bool several = lost_ > 2 * datagram_;
  bool congested = marked_ || (several && share > (queue ? kQueueLoss : kPolicerLoss));
  if (congested) bound_ = std::max(std::min(bound_, window) * kBackoff, least);
  lost_ = acked_ = 0;
  marked_ = false;
  return congested;
}

Bbr::Bbr(uint64_t datagram, uint64_t initial)
    : datagram_(datagram), initial_(initial), window_(initialWindow()), bound_(datagram) {}

void Bbr::reset(Time) {
  *this = Bbr(datagram_, initial_);
}

void Bbr::onAck(const AckSample& ack) {
  srtt_ = ack.srtt;
  if (ack.minRtt > Duration{}) minRtt_ = ack.minRtt;
  bool newRound = ack.priorDelivered >= roundEnd_;
  if (newRound) {
    roundEnd_ = ack.delivered;
    bandwidth_.beginRound();
  }
  bandwidth_.onAck(ack);
  start_.onAck(ack);
  bound_.onAck(ack.bytes);
  advance(ack, newRound && onRound());

  double gain = state_ == State::kProbe ? kWindowGain : kStartupGain;
  double target =
      gain * bdp() + bandwidth() * toSeconds(kAckClump) + 3 * static_cast<double>(datagram_);
  if (bandwidth() == 0) target = window_;
  window_ += static_cast<double>(ack.bytes);
  if (state_ != State::kStartup || window_ > 2 * target) window_ = std::min(window_, target);
}

// True when the round showed that the pipe is full. The bound is never below one bandwidth-delay
// product: with that much in flight and no queue, the path is just full.
bool Bbr::onRound() {
  bool full = start_.onRound(bandwidth(), minRtt_);
  bool congested = bound_.onRound(srtt_, minRtt_, window_, std::max(bdp(), least()));
  return full || congested;
}

void Bbr::advance(const AckSample& ack, bool full) {
  auto inFlight = static_cast<double>(ack.inFlight);
  switch (state_) {
    case State::kStartup:
      if (!full) return;
      state_ = State::kDrain;
      gain_ = kDrainGain;
      [[fallthrough]];
    case State::kDrain:
      if (inFlight > bdp()) return;
      state_ = State::kProbe;
      return beginTurn(2, ack.now);  // at gain 1: the start was a probe already
    case State::kProbe: {
      Duration lasted = ack.now - turnBegan_;
      // Bytes that on average wait for their ACK to be sent, not in a queue.
      double clump = bandwidth() * toSeconds(kAckClump) / 2;
      bool over = lasted > minRtt_;
      if (gain_ > 1 && inFlight < gain_ * bdp() && !bound_.hasLoss()) over = lasted > 2 * minRtt_;
      if (gain_ < 1) over = inFlight <= bdp() + clump || lasted > kMaxDrain * minRtt_;
      if (over) beginTurn((turn_ + 1) % kGains.size(), ack.now);
    }
  }
}

void Bbr::beginTurn(size_t turn, Time now) {
  turn_ = turn;
  turnBegan_ = now;
  gain_ = kGains[turn];
  if (gain_ > 1) bound_.raise(gain_);
  bound_.release(4 * std::max(bdp(), initialWindow()));
}

void Bbr::onLoss(const LossSample& loss) {
  bound_.onLoss(loss.bytes);
  if (loss.persistent) window_ = least();
}

void Bbr::onMarks(uint64_t marks, Time, Time) {
  bound_.onMarks(marks);
}

uint64_t Bbr::window() const {
  return static_cast<uint64_t>(std::max(std::min(window_, bound_.get()), least()));
}

double Bbr::pacingRate() const {
  if (srtt_ <= Duration{}) return std::numeric_limits<double>::infinity();
  if (bandwidth() == 0) return kStartupGain * window_ / toSeconds(srtt_);
  return kPacingMargin * gain_ * bandwidth();
}

}  // namespace braid
