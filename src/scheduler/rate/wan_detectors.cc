#include "scheduler/rate/wan_detectors.h"

#include <algorithm>

namespace braid {

// What the path holds is its rate times the RTT without a queue. The rate is window / RTT, or the
// rate that arrives if that is lower because the rate has just fallen.
void RttProbe::begin(double window, const PathModel& path, double least) {
  double rtt = toSeconds(path.empty() + path.queue());
  double holds = std::min(window / rtt, path.arrived()) * toSeconds(path.empty());
  window_ = std::max(kPart * holds, least);
  state_ = State::kLowered;
}

double CompetitionDetector::least(const PathModel& path) const {
  return std::min(kPackets * datagram_ / path.arrived(), toSeconds(WanTarget::kMost));
}

bool CompetitionDetector::onRound(const PathModel& path, const WanTarget& target) {
  double own = kHighOwn * toSeconds(target.at(path.rate()));
  double high = std::max(kHighQueue * target.secondsAt(path.highest()), std::min(own, kHighMost));
  high_ = toSeconds(path.queue()) > std::max(high, least(path)) ? high_ + 1 : 0;
  return high_ >= kHighRounds;
}

CompetitionDetector::Owner CompetitionDetector::onProbe(const PathModel& path,
                                                        const WanTarget& target) {
  double left = std::max(kLeft * target.secondsAt(path.highest()), least(path));
  foreign_ = toSeconds(path.queue()) > left ? foreign_ + 1 : 0;
  if (foreign_ >= kProbes) return Owner::kOther;
  return foreign_ > 0 ? Owner::kDoubtful : Owner::kSelf;
}

void WanCompetition::setShare(double share) {
  share_ = share;
  cubic_.setShare(share);
}

void WanCompetition::begin(double window, const PathModel& path) {
  cubic_ = Cubic(datagram_, initial_);
  cubic_.setShare(share_);
  cubic_.resume(window, path.srtt());
  longest_ = path.queue();
  probeRounds_ = probeIn_ = kProbeRounds;
}

void WanCompetition::onLoss(const LossSample& loss, const WanRound& round, const PathModel& path,
                            double window) {
  bool full = toSeconds(path.smoothedQueue()) >= kFullQueue * toSeconds(longest_);
  double usual = path.loss() * window / static_cast<double>(datagram_);
  // A single lost packet says nothing where some are always lost.
  double single = path.loss() > PolicerDetector::kDoubtful / 2 ? 1 : 0;
  bool many = static_cast<double>(round.packets) > kUsualLoss * usual + single;
  if (loss.persistent || (full && many)) cubic_.onLoss(loss);
}

bool WanCompetition::isProbeDue(Duration queue) {
  if (--probeIn_ > 0) return false;
  probeIn_ = probeRounds_ = std::min(2 * probeRounds_, kMaxProbeRounds);
  before_ = queue;
  return true;
}

namespace {
/// Weight of a round in the path's usual loss.
constexpr double kFloorGain = 1.0 / 16;
/// Packets that are found lost in a round were sent in the round before. So the first kLag rounds
/// of a state still show the state before, and are not counted.
constexpr int kLag = 1;

double share(double lost, double acked) {
  return lost + acked > 0 ? lost / (lost + acked) : 0;
}
}  // namespace

void PolicerDetector::onRound(const Round& round) {
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
      // Only the second such round counts: in the first one, the policer's bucket may still have
      // let through more than its rate.
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

bool PolicerDetector::isBusy(const Round& round) const {
  double sent = round.acked > 0 ? round.rate * (1 + round.lost / round.acked) : 0;
  return sent >= kBusy * std::min(rate_, round.known);
}

// The trial has a result when enough packets were sent, or when more were lost already than half of
// what would be lost of enough packets.
bool PolicerDetector::isTold() const {
  double told = kTrialLosses * datagram_;
  return trigger_ * (acked_ + lost_) >= told || lost_ > told / 2;
}

void PolicerDetector::judge(const Round& round) {
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

void PolicerDetector::hold(double rate, double loss, Time now) {
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

void PolicerDetector::blameThePath(Time now) {
  until_ = now + doubt_;
  doubt_ = std::min<Duration>(2 * doubt_, kLongestDoubt);
  lift();
}

void PolicerDetector::lift() {
  state_ = State::kNone;
  rate_ = kUnbounded;
  rounds_ = 0;
}

}  // namespace braid
