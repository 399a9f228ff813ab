#include "scheduler/rate/loss_ceiling.h"

#include <algorithm>

namespace braid {

namespace {
/// Weight of a round in the path's usual loss.
constexpr double kFloorGain = 1.0 / 16;
/// What is lost in a round was sent in the one before: the first round of a state tells of the last one.
constexpr int kLag = 1;

double share(double lost, double acked) {
  return lost + acked > 0 ? lost / (lost + acked) : 0;
}
}  // namespace

void LossCeiling::onRound(const Round& round) {
  if (state_ == State::kHold && !judged_ && round.now - begun_ > kLongestTrial)
    return blameThePath(round.now);
  if (!isBusy(round)) return;
  double loss = share(round.lost, round.acked);
  ++rounds_;
  if (rounds_ > kLag) {
    acked_ += round.acked;
    lost_ += round.lost;
  }
  switch (state_) {
    case State::kNone:
      if (round.queue || loss <= floor_ + kExcess || round.packets < kLeastLost) {
        suspicious_ = 0;
        arrived_ = 0;
        if (round.queue) return;
        floor_ += kFloorGain * (std::min(loss, floor_ + kExcess) - floor_);
        if (floor_ < kDoubtful || !round.ofCeiling || round.now < until_) return;
        interval_ = kFirstHold;
        return hold(kMargin * round.rate, floor_, round.now);
      }
      arrived_ = std::max(arrived_, round.rate);
      if (++suspicious_ < kRounds) return;
      interval_ = kFirstHold;
      return hold(kMargin * arrived_, loss, round.now);
    case State::kHold:
      if (rounds_ >= kLag + kTrial && (judged_ || isTold())) return judge(round);
      if (round.now < until_ || !judged_) return;
      state_ = State::kRaise;
      rounds_ = 0;
      held_ = rate_;
      rate_ *= kRaise;
      return;
    case State::kRaise:
      if (rounds_ <= kLag) return;
      // The second such round, for in the first one a bucket may still have given more than its rate.
      if (!round.queue && loss > floor_ + kRaiseExcess && round.packets >= kLeastLost / 2) {
        if (++suspicious_ < kRounds) return;
        interval_ = std::min<Duration>(interval_ * 2, kLongestHold);
        return hold(std::max(held_, kMargin * round.rate), loss, round.now);
      }
      suspicious_ = 0;
      if (round.ofCeiling) rate_ *= kRaise;
      if (round.queue || rate_ > kFree * round.rate) lift();
  }
}

bool LossCeiling::isBusy(const Round& round) const {
  double sent = round.acked > 0 ? round.rate * (1 + round.lost / round.acked) : 0;
  return sent >= kBusy * std::min(rate_, round.known);
}

// Enough packets, or more lost than half of what would be of enough.
bool LossCeiling::isTold() const {
  double told = kTrialLosses * datagram_;
  return trigger_ * (acked_ + lost_) >= told || lost_ > told / 2;
}

void LossCeiling::judge(const Round& round) {
  double loss = share(lost_, acked_);
  if (!judged_ && loss > trigger_ / 2) {
    floor_ = loss;
    return blameThePath(round.now);
  }
  if (loss > floor_ + kHoldExcess) return hold(kMargin * round.rate, loss, round.now);
  judged_ = true;
  doubt_ = kFirstDoubt;
  floor_ = loss;
  rounds_ = kLag;
  acked_ = lost_ = 0;
}

void LossCeiling::hold(double rate, double loss, Time now) {
  state_ = State::kHold;
  rate_ = rate;
  trigger_ = loss;
  begun_ = now;
  until_ = now + interval_;
  judged_ = false;
  suspicious_ = 0;
  arrived_ = 0;
  rounds_ = 0;
  acked_ = lost_ = 0;
}

void LossCeiling::blameThePath(Time now) {
  until_ = now + doubt_;
  doubt_ = std::min<Duration>(2 * doubt_, kLongestDoubt);
  lift();
}

void LossCeiling::lift() {
  state_ = State::kNone;
  rate_ = kUnbounded;
  rounds_ = 0;
}

}  // namespace braid
