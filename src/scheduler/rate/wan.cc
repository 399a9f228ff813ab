#include "scheduler/rate/wan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace braid {

Wan::Wan(uint64_t datagram, uint64_t initial)
    : datagram_(datagram),
      initial_(initial),
      window_(static_cast<double>(initial * datagram)),
      target_(datagram),
      fastWindow_(datagram, initial),
      burst_(initial * datagram),
      competitors_(datagram),
      competition_(datagram, initial),
      policer_(datagram) {}

void Wan::reset(Time now) {
  *this = Wan(datagram_, initial_);
  startedAt_ = now;
}

// After persistent congestion (RFC 9002 section 7.6.2). The ceiling is kept: a policer is still
// there after a silence, and would let its whole bucket through before it drops again.
void Wan::restart(Time now) {
  PolicerDetector policer = policer_;
  reset(now);
  policer_ = policer;
  window_ = fastWindow_.least();
}

void Wan::setSharing(size_t subflows) {
  target_.setSharing(subflows);
  competition_.setShare(1 / static_cast<double>(subflows));
}

uint64_t Wan::window() const {
  double window = mode_ == Mode::kCompete ? static_cast<double>(competition_.window()) : window_;
  return static_cast<uint64_t>(std::max(probe_.limit(window), fastWindow_.least()));
}

double Wan::pacingRate() const {
  if (path_.srtt() <= Duration{}) return std::numeric_limits<double>::infinity();
  if (mode_ == Mode::kCompete) return competition_.pacingRate();
  double gain = mode_ == Mode::kStart ? kStartPacing : kPacing;
  double srtt = toSeconds(path_.srtt());
  double each = static_cast<double>(datagram_) / srtt;  // one datagram per RTT is always allowed
  return std::min(gain * windowBytes() / srtt, std::max(policer_.ceiling(), each));
}

// No bursts under a ceiling: a policer drops them, and their losses would say nothing about the
// ceiling.
double Wan::burst() const {
  return mode_ == Mode::kModel && !policer_.hasCeiling() ? burst_.size() : 0;
}

void Wan::onSent(uint64_t bytes, uint64_t inFlight, Time now) {
  if (mode_ == Mode::kCompete) competition_.onSent(bytes, inFlight, now);
  if (mode_ == Mode::kModel && inFlight <= bytes) burst_.begin(target(), now);
  Duration pause = rounds_.onSent(bytes, inFlight, now);
  if (mode_ != Mode::kStart && pause > path_.srtt()) {
    rounds_.onPause();
    probe_.onPause();
  }
  if (!rounds_.isMeaningful() && inFlight + datagram_ > window()) rounds_.onFull();
}

void Wan::onAck(const AckSample& ack) {
  AckSample sample = ack;
  sample.rtt = path_.rttOf(ack);  // what the peer waits is not a queue
  path_.onAck(sample, mode_ == Mode::kCompete);
  if (ack.largestSentAt < startedAt_) return;
  rounds_.onAck(sample);
  burst_.onAck(ack, path_.base());
  if (mode_ == Mode::kStart) window_ += WanStart::growth(ack, window_);
  if (mode_ == Mode::kCompete) competition_.onAck(ack);
  if (!rounds_.isEndedBy(ack)) return;
  burst_.onRound(target(), ack.now);
  if (rounds_.isMeaningful()) judgeRound(ack);
  rounds_.begin(ack);
}

void Wan::judgeRound(const AckSample& ack) {
  const WanRound& round = rounds_.current();
  bool starting = mode_ == Mode::kStart;
  bool used = round.isUsed(windowBytes(), starting ? kUsed / 2 : kUsed);
  bool held = pacingRate() >= policer_.ceiling();
  auto says = used && !starting ? PathModel::Rate::kAll : PathModel::Rate::kAtLeast;
  path_.onRound(round, ack.now, probe_.isActive() ? PathModel::Rate::kNothing : says);
  // Not in the start: what arrives then was sent a round before, at half the rate. A ceiling
  // derived from it would be far too low.
  if (mode_ == Mode::kModel) {
    // A queue below the target counts as none: a buffer that overflows before the model has queued
    // its target acts like a policer.
    bool queue = path_.queue() >= target();
    policer_.onRound({ack.now, round.acked, round.lost, round.packets, path_.arrived(),
                      path_.highest(), queue, used || held});
  }
  if (probe_.isLowered()) {
    // `bytes` may exceed `inFlight`: an ACK also covers packets that had been declared lost.
    probe_.onRound(static_cast<double>(ack.inFlight - std::min(ack.inFlight, ack.bytes)));
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
  window_ = fastWindow_.begin(window_, path_, toSeconds(target()));
  burst_ = WanBurst(initial_ * datagram_);
  competitors_ = CompetitionDetector(datagram_);
}

void Wan::modelRound(bool used, Time now) {
  if (probe_.takeAnswer()) return judgeQueue();
  const WanRound& round = rounds_.current();
  double target = toSeconds(this->target());
  if (round.marked) {
    window_ = fastWindow_.onMarkedRound(window_);
  } else if (!used) {
    competitors_.restart();
    window_ = fastWindow_.onUnusedRound(window_, round, path_, target);
  } else {
    window_ = fastWindow_.onRound(window_, path_, target);
    bool isHigh = competitors_.onRound(path_, target_);
    if (isHigh || now - path_.baseSeen() > RttProbe::kEvery) beginProbe();
  }
  // The ceiling paces, and not the window, which would let a burst go with each ACK.
  if (policer_.hasCeiling() && !round.marked && path_.queue() < this->target())
    window_ = std::max(window_, fastWindow_.forRate(policer_.ceiling(), path_));
}

void Wan::judgeQueue() {
  using Owner = CompetitionDetector::Owner;
  Owner owner = competitors_.onProbe(path_, target_);
  if (owner == Owner::kOther) enterCompetition();
  if (owner == Owner::kDoubtful) beginProbe();
}

void Wan::beginProbe() {
  probe_.begin(windowBytes(), path_, fastWindow_.least());
  path_.onProbe(rounds_.current().began);
  competitors_.restart();
}

void Wan::enterCompetition() {
  mode_ = Mode::kCompete;
  competition_.begin(window_, path_);
}

void Wan::competeRound() {
  competition_.onRound(path_.queue());
  if (probe_.takeAnswer()) {
    if (competition_.isOver(path_.queue())) enterModel();
  } else if (competition_.isProbeDue(path_.queue())) {
    beginProbe();
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
