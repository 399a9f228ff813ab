#include "scheduler/rate/wan_detectors.h"

#include <algorithm>
#include <utility>

namespace braid {

// What the path holds is its rate times the base RTT. The rate is window / RTT, or the rate that
// arrives if that is lower because the rate has just fallen.
void RttProbe::begin(double window, const PathModel& path, double least) {
  double rtt = toSeconds(path.base() + path.queue());
  double holds = std::min(window / rtt, path.arrived()) * toSeconds(path.base());
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
  bool full = toSeconds(path.srtt() - path.base()) >= kFullQueue * toSeconds(longest_);
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
/// Weight of kTrial rounds under a ceiling in it.
constexpr double kHoldGain = 1.0 / 4;
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
  if (rounds_ > kLag) seen_.add(round, loss > floor_ + kHoldExcess);
  switch (state_) {
    case State::kNone:
      return watch(round, loss);
    case State::kHold:
      if (seen_.rounds >= kTrial && (judged_ || isTold())) return judge(round);
      if (round.now >= until_ && judged_) beginRaise(round.now);
      return;
    case State::kRaise:
      if (rounds_ > kLag) raise(round, loss);
  }
}

void PolicerDetector::watch(const Round& round, double loss) {
  bool isLossy = loss > floor_ + kExcess && round.packets >= kLeastLost;
  // The buffer may be no larger than the target; then rounds with and without a queue alternate.
  if (round.queue && isLossy) return;
  if (!isLossy) {
    suspicious_ = 0;
    suspicion_ = arrived_ = 0;
    if (round.queue) return;
    floor_ += kFloorGain * (std::min(loss, floor_ + kExcess) - floor_);
    if (floor_ < kDoubtful || !round.ofCeiling || round.now < until_) return;
    interval_ = kFirstHold;
    retried_ = true;
    return hold(kMargin * round.rate, floor_, round.now);
  }
  suspicion_ += loss - floor_;
  arrived_ = std::max(arrived_, round.rate);
  if (++suspicious_ < kRounds || suspicion_ < kSuspicion) return;
  interval_ =
      round.now < returnsUntil_ ? std::min<Duration>(interval_ * 2, kLongestHold) : kFirstHold;
  retried_ = false;
  hold(kMargin * arrived_, loss, round.now);
}

void PolicerDetector::beginRaise(Time now) {
  state_ = State::kRaise;
  rounds_ = 0;
  suspicious_ = 0;
  seen_ = {};
  held_ = rate_;
  rate_ *= kRaise;
  raisedAt_ = now;
}

// Only the second round with some loss counts, but a round with much loss counts at once: the
// policer's bucket is then empty.
void PolicerDetector::raise(const Round& round, double loss) {
  if (!round.queue && loss > floor_ + kRaiseExcess && round.packets >= kLeastLost / 2) {
    if (++suspicious_ < kRounds && loss <= floor_ + kMuchExcess) return;
    double now = kMargin * round.rate;
    interval_ = now > kRaise * held_ ? kFirstHold : std::min<Duration>(interval_ * 2, kLongestHold);
    hold(std::max(held_, now), loss, round.now);
    judged_ = true;
    return;
  }
  suspicious_ = 0;
  if (round.ofCeiling && round.now - raisedAt_ >= kRaiseEvery) {
    rate_ *= kRaise;
    raisedAt_ = round.now;
  }
  double arrives = std::max(round.rate, seen_.rates / seen_.rounds);
  if (round.queue || rate_ > kFree * arrives) {
    returnsUntil_ = round.now + kReturn;
    lift();
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
  return trigger_ * (seen_.acked + seen_.lost) >= told || seen_.lost > told / 2;
}

void PolicerDetector::judge(const Round& round) {
  double loss = share(seen_.lost, seen_.acked);
  double rate = seen_.rates / seen_.rounds;
  if (!judged_ && loss > trigger_ / 2) {
    // The rate that led to this ceiling may have been that of the policer's full bucket.
    if (!std::exchange(retried_, true)) return hold(kMargin * rate, loss, round.now);
    floor_ = loss;
    return blameThePath(round.now);
  }
  if (loss > floor_ + kHoldExcess && seen_.lossy >= kTrial - 1) {
    // Raised again soon, in case the losses were chance.
    interval_ = 2 * kFirstHold;
    return hold(kMargin * seen_.highest, loss, round.now);
  }
  judged_ = true;
  doubt_ = kFirstDoubt;
  floor_ += kHoldGain * (std::min(loss, floor_ + kExcess) - floor_);
  seen_ = {};
}

void PolicerDetector::hold(double rate, double loss, Time now) {
  state_ = State::kHold;
  rate_ = rate;
  trigger_ = loss;
  begun_ = now;
  until_ = now + interval_;
  judged_ = false;
  suspicious_ = 0;
  suspicion_ = arrived_ = 0;
  rounds_ = 0;
  seen_ = {};
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
  suspicious_ = 0;
  suspicion_ = arrived_ = 0;
}

}  // namespace braid
