#include "scheduler/rate/wan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace braid {

void WanBurst::begin(Duration target, Time now) {
  judge(target, now);
  seen_ = {};
  rounds_ = 0;
  isFresh_ = isRunning_ = true;
}

// Only the bytes that were sent at once count (isWatched()). Packets that were paced come after
// them, and may queue or be lost for another reason. The peer's ACK delay is subtracted: it is not
// a queue.
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

Wan::Wan(uint64_t datagram, uint64_t initial)
    : datagram_(datagram),
      initial_(initial),
      window_(static_cast<double>(initial * datagram)),
      target_(datagram),
      model_(datagram, initial),
      burst_(initial * datagram),
      foreign_(datagram),
      competition_(datagram, initial),
      ceiling_(datagram) {}

void Wan::reset(Time now) {
  *this = Wan(datagram_, initial_);
  startedAt_ = now;
}

// After persistent congestion (RFC 9002 section 7.6.2). The ceiling is kept: a policer is still
// there after a silence, and would let its whole bucket through before it drops again.
void Wan::restart(Time now) {
  PolicerDetector ceiling = ceiling_;
  reset(now);
  ceiling_ = ceiling;
  window_ = model_.least();
}

void Wan::setSharing(size_t subflows) {
  target_.setSharing(subflows);
  competition_.setShare(1 / static_cast<double>(subflows));
}

uint64_t Wan::window() const {
  double window = mode_ == Mode::kCompete ? static_cast<double>(competition_.window()) : window_;
  return static_cast<uint64_t>(std::max(look_.limit(window), model_.least()));
}

double Wan::pacingRate() const {
  if (path_.srtt() <= Duration{}) return std::numeric_limits<double>::infinity();
  if (mode_ == Mode::kCompete) return competition_.pacingRate();
  double gain = mode_ == Mode::kStart ? kStartPacing : kPacing;
  double srtt = toSeconds(path_.srtt());
  double each = static_cast<double>(datagram_) / srtt;  // one datagram per RTT is always allowed
  return std::min(gain * windowBytes() / srtt, std::max(ceiling_.rate(), each));
}

// No bursts under a ceiling: a policer drops them, and their losses would say nothing about the
// ceiling.
double Wan::burst() const {
  return mode_ == Mode::kModel && !ceiling_.isThere() ? burst_.size() : 0;
}

void Wan::onSent(uint64_t bytes, uint64_t inFlight, Time now) {
  if (mode_ == Mode::kCompete) competition_.onSent(bytes, inFlight, now);
  if (mode_ == Mode::kModel && inFlight <= bytes) burst_.begin(target(), now);
  Duration pause = rounds_.onSent(bytes, inFlight, now);
  if (mode_ != Mode::kStart && pause > path_.srtt()) {
    rounds_.onPause();
    look_.onPause();
  }
  if (!rounds_.isTelling() && inFlight + datagram_ > window()) rounds_.onFull();
}

void Wan::onAck(const AckSample& ack) {
  path_.onAck(ack, mode_ == Mode::kCompete);
  if (ack.largestSentAt < startedAt_) return;
  rounds_.onAck(ack);
  burst_.onAck(ack, path_.base());
  if (mode_ == Mode::kStart) window_ += WanStart::growth(ack, window_);
  if (mode_ == Mode::kCompete) competition_.onAck(ack);
  if (!rounds_.isEndedBy(ack)) return;
  burst_.onRound(target(), ack.now);
  if (rounds_.isTelling()) judgeRound(ack);
  rounds_.begin(ack);
}

void Wan::judgeRound(const AckSample& ack) {
  const WanRound& round = rounds_.current();
  bool starting = mode_ == Mode::kStart;
  bool used = round.isUsed(windowBytes(), starting ? kUsed / 2 : kUsed);
  bool held = pacingRate() >= ceiling_.rate();
  auto says = used && !starting ? PathModel::Rate::kAll : PathModel::Rate::kAtLeast;
  path_.onRound(round, ack.now, look_.isOn() ? PathModel::Rate::kNothing : says);
  // Not in the start: what arrives then was sent a round before, at half the rate. A ceiling
  // derived from it would be far too low.
  if (mode_ == Mode::kModel) {
    // A queue below the target counts as none: a buffer that overflows before the model has queued
    // its target acts like a policer.
    bool queue = path_.queue() >= target();
    ceiling_.onRound({ack.now, round.acked, round.lost, round.packets, path_.arrived(),
                      path_.highest(), queue, used || held});
  }
  if (look_.isLowered()) {
    // `bytes` may exceed `inFlight`: an ACK also covers packets that had been declared lost.
    look_.onRound(static_cast<double>(ack.inFlight - std::min(ack.inFlight, ack.bytes)));
  } else if (starting) {
    if (start_.onRound(round, path_, used)) enterModel();
  } else if (mode_ == Mode::kModel) {
    modelRound(used, ack.now);
  } else {
    competeRound();
  }
}

void Wan::enterModel() {
  mode_ = Mode::kModel;
  window_ = model_.begin(window_, path_, toSeconds(target()));
  burst_ = WanBurst(initial_ * datagram_);
  foreign_ = CompetitionDetector(datagram_);
}

void Wan::modelRound(bool used, Time now) {
  if (look_.takeAnswer()) return judgeQueue();
  const WanRound& round = rounds_.current();
  double target = toSeconds(this->target());
  if (round.marked) {
    window_ = model_.onMarkedRound(window_);
  } else if (!used) {
    foreign_.restart();
    window_ = model_.onUnusedRound(window_, round, path_, target);
  } else {
    window_ = model_.onRound(window_, path_, target);
    bool isHigh = foreign_.onRound(path_, target_);
    if (isHigh || now - path_.baseSeen() > RttProbe::kEvery) look();
  }
}

void Wan::judgeQueue() {
  using Owner = CompetitionDetector::Owner;
  Owner owner = foreign_.onLook(path_, target_);
  if (owner == Owner::kOther) enterCompetition();
  if (owner == Owner::kDoubtful) look();
}

void Wan::look() {
  look_.begin(windowBytes(), path_, model_.least());
  path_.onLook(rounds_.current().began);
  foreign_.restart();
}

void Wan::enterCompetition() {
  mode_ = Mode::kCompete;
  competition_.begin(window_, path_);
}

void Wan::competeRound() {
  competition_.onRound(path_.queue());
  if (look_.takeAnswer()) {
    if (competition_.isOver(path_.queue())) enterModel();
  } else if (competition_.isLookDue(path_.queue())) {
    look();
  }
}

void Wan::onLoss(const LossSample& loss) {
  if (loss.largestSentAt < startedAt_) return;
  rounds_.onLoss(loss);
  burst_.onLoss(loss);
  if (mode_ == Mode::kCompete) {
    competition_.onLoss(loss, rounds_.current(), path_, windowBytes());
  } else if (loss.persistent) {
    restart(loss.now);
  }
}

void Wan::onMarks(uint64_t marks, Time largestSentAt, Time now) {
  if (largestSentAt < startedAt_) return;
  rounds_.onMarks(marks);
  if (mode_ == Mode::kCompete) competition_.onMarks(marks, largestSentAt, now);
}

void Wan::onSpuriousLoss(Time sentAt, Time now) {
  if (mode_ == Mode::kCompete) competition_.onSpuriousLoss(sentAt, now);
}

CoupledWan::CoupledWan(uint64_t datagram, uint64_t initial, ControllerGroup* group)
    : wan_(datagram, initial), group_(group) {
  member_.coupled = false;
  if (group_) group_->join(member_);
}

CoupledWan::~CoupledWan() {
  if (group_) group_->leave(member_);
}

// RTTs measured while the application limited the sender are left out: they show the path's delay,
// not that of its bottleneck.
void CoupledWan::onAck(const AckSample& ack) {
  if (group_) {
    if (ack.rtt > Duration{} && !ack.appLimited) member_.user.delays.onSample(ack.rtt, ack.now);
    wan_.setSharing(group_->sharing(member_, ack.now));
  }
  wan_.onAck(ack);
}

void CoupledWan::setUsable(bool usable, Time now) {
  if (group_) group_->setUsable(member_, usable, now);
}

void CoupledWan::reset(Time now) {
  member_.user.delays.reset();
  wan_.reset(now);
}

}  // namespace braid
