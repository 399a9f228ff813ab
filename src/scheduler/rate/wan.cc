#include "scheduler/rate/wan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid {

namespace {
/// Weight of a round in the loss rate.
constexpr double kLossGain = 1.0 / 8;
/// A bound for the arithmetic; kMostGrowth binds long before.
constexpr int kMostDoublings = 16;
/// The longest queue seen while competing is forgotten by so much a round.
constexpr int kLongestLife = 64;
}  // namespace

Wan::Wan(uint64_t datagram, uint64_t initial)
    : datagram_(datagram),
      initial_(initial),
      window_(initialWindow()),
      cubic_(datagram, initial),
      ceiling_(datagram) {}

void Wan::reset(Time) {
  *this = Wan(datagram_, initial_);
}

void Wan::setSharing(size_t subflows) {
  sharing_ = static_cast<double>(subflows);
  cubic_.setShare(1 / sharing_);
}

double Wan::targetAt(double rate) const {
  rate *= sharing_;
  double few = 2 * static_cast<double>(datagram_) / rate;
  double target = std::max(toSeconds(kTarget) * std::cbrt(kTargetRate / rate), few);
  return std::clamp(target, toSeconds(kLeastTarget), toSeconds(kMostTarget));
}

// The shortest RTT was seen at a higher rate, when a packet took less time to send.
double Wan::packetTime() const {
  return std::min(kPackets * static_cast<double>(datagram_) / arrived_, toSeconds(kMostTarget));
}

Duration Wan::target() const {
  return rate_ > 0 ? fromSeconds(targetAt(rate_)) : kMostTarget;
}

uint64_t Wan::window() const {
  double window = mode_ == Mode::kCompete ? static_cast<double>(cubic_.window()) : window_;
  if (drain_ == Drain::kLowered) window = std::min(window, drainWindow_);
  return static_cast<uint64_t>(std::max(window, least()));
}

double Wan::pacingRate() const {
  if (srtt_ <= Duration{}) return std::numeric_limits<double>::infinity();
  if (mode_ == Mode::kCompete) return cubic_.pacingRate();
  double gain = mode_ == Mode::kStart ? kStartPacing : kPacing;
  double each = static_cast<double>(datagram_) / toSeconds(srtt_);  // a datagram a round trip always may go
  return std::min(gain * static_cast<double>(window()) / toSeconds(srtt_), std::max(ceiling_.rate(), each));
}

// A round that nothing was sent in is no round.
void Wan::onSent(uint64_t bytes, uint64_t inFlight, Time now) {
  if (mode_ == Mode::kCompete) cubic_.onSent(bytes, inFlight, now);
  Time before = std::exchange(lastSent_, now);
  if (inFlight > bytes) return;
  round_ = {};
  round_.began = now;
  if (mode_ == Mode::kStart || now - before <= srtt_) return;
  resumed_ = true;
  if (drain_ == Drain::kLowered) drain_ = Drain::kNone;
}

void Wan::onAck(const AckSample& ack) {
  srtt_ = ack.srtt;
  noteRtt(ack);
  round_.acked += static_cast<double>(ack.bytes);
  round_.inFlight += static_cast<double>(ack.inFlight);
  ++round_.acks;
  if (mode_ == Mode::kStart && static_cast<double>(ack.inFlight) >= window_ / 2)
    window_ += static_cast<double>(ack.bytes);
  if (mode_ == Mode::kCompete) cubic_.onAck(ack);
  if (ack.priorDelivered >= roundEnd_ && round_.samples > 0) endRound(ack);
}

void Wan::noteRtt(const AckSample& ack) {
  if (ack.rtt <= Duration{}) return;
  round_.rtt = std::min(round_.rtt, ack.rtt);
  round_.rtts += ack.rtt;
  ++round_.samples;
  Duration life = mode_ == Mode::kCompete ? kBaseLifeCompeting : kBaseLife;
  if (base_ == Duration{} || ack.rtt < base_) {
    base_ = ack.rtt;
  } else if (ack.now - baseSeen_ > life) {
    base_ = ack.minRtt;
  }
  if (ack.rtt <= base_ + base_ / 64) baseSeen_ = ack.now;
}

// The first ACK after a pause ends a round of which next to nothing has arrived: it says nothing.
void Wan::endRound(const AckSample& ack) {
  if (!std::exchange(resumed_, false)) judgeRound(ack);
  roundEnd_ = ack.delivered;
  round_ = {};
  round_.began = ack.now;
}

void Wan::judgeRound(const AckSample& ack) {
  double seconds = toSeconds(ack.now - round_.began);
  double sent = round_.lost + round_.acked;
  double use = mode_ == Mode::kStart ? kUsed / 2 : kUsed;  // there the window doubles within the round
  bool used = round_.inFlight >= use * static_cast<double>(window()) * round_.acks;
  bool held = pacingRate() >= ceiling_.rate();
  arrived_ = seconds > 0 ? round_.acked / seconds : 0;
  noteRate(used);
  highest_ = std::max(rate_, highest_ * (1 - std::min(seconds / toSeconds(kRateLife), 1.0)));
  queue_ = std::max<Duration>(round_.rtt - base_, Duration{});
  loss_ += kLossGain * ((sent > 0 ? round_.lost / sent : 0) - loss_);
  if (mode_ != Mode::kCompete)
    ceiling_.onRound(
        {ack.now, round_.acked, round_.lost, round_.packets, arrived_, queue_ > target() / 2, used || held});
  if (drain_ == Drain::kLowered) {
    if (static_cast<double>(ack.inFlight - ack.bytes) <= drainWindow_) drain_ = Drain::kRestored;
  } else if (mode_ == Mode::kStart) {
    startRound(used);
  } else if (mode_ == Mode::kModel) {
    modelRound(used, ack.now);
  } else {
    competeRound();
  }
}

// A round that did not use the window says only that the path gives at least as much.
void Wan::noteRate(bool used) {
  if (drain_ != Drain::kNone) return;
  if (used && mode_ != Mode::kStart) rate_ = (rate_ + arrived_) / 2;
  if (!used || mode_ == Mode::kStart) rate_ = std::max(rate_, arrived_);
}

void Wan::startRound(bool used) {
  Duration queue = std::clamp<Duration>(base_ / 8, kMinStartQueue, kMaxStartQueue);
  double all = round_.lost + round_.acked;
  if (used && rate_ < fullRate_ * kStartGrowth) {
    ++fullRounds_;
  } else if (used) {
    fullRate_ = rate_;
    fullRounds_ = 0;
  }
  // In bursts of a sender that does not fill the window, the first packet of each sees no queue.
  bool high = round_.rtts / round_.samples - base_ >= kStartMeanQueue * queue;
  bool queued = round_.samples >= kStartSamples && (queue_ >= queue || high);
  bool lossy = round_.packets >= LossCeiling::kLeastLost && round_.lost > kStartLoss * all;
  if (queued || lossy || round_.marked || fullRounds_ >= kStartRounds) enterModel();
}

void Wan::enterModel() {
  mode_ = Mode::kModel;
  window_ = std::min(window_, std::max(product() + rate_ * toSeconds(target()), initialWindow()));
  low_ = high_ = foreign_ = 0;
}

void Wan::modelRound(bool used, Time now) {
  double queue = toSeconds(queue_);
  if (drain_ == Drain::kRestored) {
    drain_ = Drain::kNone;
    foreign_ = queue > std::max(kForeignLeft * targetAt(highest_), packetTime()) ? foreign_ + 1 : 0;
    if (foreign_ >= kForeignTests) return enterCompetition();
    if (foreign_ > 0) lower();
    return;
  }
  if (round_.marked) {
    window_ = std::max(window_ * kMarkBeta, least());
    low_ = 0;
    return;
  }
  double target = toSeconds(this->target());
  if (!used) {
    low_ = high_ = 0;
    double mean = toSeconds(round_.rtts / round_.samples - base_);
    window_ = std::min(window_, std::max(window_ + step(mean, target), initialWindow()));
    return;
  }
  moveWindow(queue, target);
  double high = std::max(kHighQueue * targetAt(highest_), std::min(kHighOwn * target, kHighMost));
  high_ = queue > std::max(high, packetTime()) ? high_ + 1 : 0;
  if (high_ >= kHighRounds || now - baseSeen_ > kDrainEvery) lower();
}

double Wan::step(double queue, double target) const {
  double alpha = rate_ * target + std::min(loss_, kMostLoss) * window_;
  double base = toSeconds(base_);
  return kGain * (window_ * base / (base + queue) + alpha - window_);
}

void Wan::moveWindow(double queue, double target) {
  double step = this->step(queue, target);
  low_ = queue < target / 2 ? low_ + 1 : 0;
  if (step > 0 && low_ > kSteadyRounds) step *= std::exp2(std::min(low_ - kSteadyRounds, kMostDoublings));
  window_ = std::max(window_ + std::min(step, kMostGrowth * window_), least());
}

// What the path holds without a queue: by the window and the RTT, or what arrives when that has just fallen.
void Wan::lower() {
  double rtt = toSeconds(base_ + queue_);
  double holds = std::min(static_cast<double>(window()) / rtt, arrived_) * toSeconds(base_);
  drainWindow_ = std::max(kDrain * holds, least());
  drain_ = Drain::kLowered;
  high_ = 0;
  baseSeen_ = std::max(baseSeen_, round_.began);  // not again at once
}

void Wan::enterCompetition() {
  mode_ = Mode::kCompete;
  cubic_ = Cubic(datagram_, initial_);
  cubic_.setShare(1 / sharing_);
  cubic_.resume(window_, srtt_);
  longest_ = queue_;
  lookRounds_ = lookIn_ = kLookRounds;
}

void Wan::competeRound() {
  longest_ = std::max<Duration>(queue_, longest_ - longest_ / kLongestLife);
  if (drain_ == Drain::kRestored) {
    drain_ = Drain::kNone;
    if (toSeconds(queue_) > kGone * toSeconds(queueBefore_)) return;
    enterModel();
  } else if (--lookIn_ <= 0) {
    lookIn_ = lookRounds_ = std::min(2 * lookRounds_, kMostLookRounds);
    queueBefore_ = queue_;
    lower();
  }
}

void Wan::onLoss(const LossSample& loss) {
  round_.lost += static_cast<double>(loss.bytes);
  round_.packets += loss.packets;
  if (loss.persistent) window_ = least();
  if (mode_ != Mode::kCompete) return;
  bool full = toSeconds(srtt_ - base_) >= kFullQueue * toSeconds(longest_);
  double usual = loss_ * static_cast<double>(window()) / static_cast<double>(datagram_);
  double single = loss_ > LossCeiling::kDoubtful / 2 ? 1 : 0;  // says nothing where some are always lost
  bool many = static_cast<double>(round_.packets) > kUsualLoss * usual + single;
  if (loss.persistent || (full && many)) cubic_.onLoss(loss);
}

void Wan::onMarks(uint64_t marks, Time largestSentAt, Time now) {
  round_.marked |= marks > 0;
  if (mode_ == Mode::kCompete) cubic_.onMarks(marks, largestSentAt, now);
}

void Wan::onSpuriousLoss(Time sentAt, Time now) {
  if (mode_ == Mode::kCompete) cubic_.onSpuriousLoss(sentAt, now);
}

}  // namespace braid
