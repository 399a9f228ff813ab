#include "scheduler/rate/wan.h"

#include <algorithm>
#include <limits>

namespace braid {

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

// RFC 9002 section 7.6.2. A policer is still there after a silence, and would let its whole bucket through first.
void Wan::restart(Time now) {
  LossCeiling ceiling = ceiling_;
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
  double each = static_cast<double>(datagram_) / srtt;  // a datagram a round trip always may go
  return std::min(gain * windowBytes() / srtt, std::max(ceiling_.rate(), each));
}

// Under a ceiling a burst is what a policer drops, and its losses would tell nothing of the ceiling.
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
  auto says = used && !starting ? WanPath::Rate::kAll : WanPath::Rate::kAtLeast;
  path_.onRound(round, ack.now, look_.isOn() ? WanPath::Rate::kNothing : says);
  // What arrives in the start left a round before, at half the rate: a ceiling from it would be far too low.
  if (mode_ == Mode::kModel) {
    // Less than the target: the buffer overflows before the model has what it aims at, as at a policer.
    bool queue = path_.queue() >= target();
    ceiling_.onRound({ack.now, round.acked, round.lost, round.packets, path_.arrived(), path_.highest(),
                      queue, used || held});
  }
  if (look_.isLowered()) {
    // An ACK also counts packets that were not in flight any more, for they counted as lost.
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
  foreign_ = WanForeignQueue(datagram_);
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
    if (isHigh || now - path_.baseSeen() > WanLook::kEvery) look();
  }
}

void Wan::judgeQueue() {
  using Owner = WanForeignQueue::Owner;
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

}  // namespace braid
