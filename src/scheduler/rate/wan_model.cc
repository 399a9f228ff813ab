#include "scheduler/rate/wan_model.h"

#include <algorithm>
#include <cmath>

#include "scheduler/rate/wan_detectors.h"

namespace braid {

void PathModel::onAck(const AckSample& ack, bool competing) {
  srtt_ = ack.srtt;
  if (ack.rtt <= Duration{}) return;
  Duration life = competing ? kBaseLifeCompeting : kBaseLife;
  if (base_ == Duration{} || ack.rtt < base_) {
    base_ = ack.rtt;
  } else if (ack.now - baseSeen_ > life) {
    base_ = ack.minRtt;
  }
  if (ack.rtt <= base_ + base_ / kNear) baseSeen_ = ack.now;
}

void PathModel::onRound(const WanRound& round, Time now, Rate says) {
  double seconds = toSeconds(now - round.began);
  arrived_ = seconds > 0 ? round.acked / seconds : 0;
  if (says == Rate::kAll) rate_ = (rate_ + arrived_) / 2;
  if (says == Rate::kAtLeast) rate_ = std::max(rate_, arrived_);
  highest_ = std::max(rate_, highest_ * (1 - std::min(seconds / toSeconds(kRateLife), 1.0)));
  queue_ = std::max<Duration>(round.rtt - base_, Duration{});
  double sent = round.sent();
  loss_ += kLossGain * ((sent > 0 ? round.lost / sent : 0) - loss_);
}

namespace {
/// Keeps the doubling from overflowing; kMostGrowth limits the step long before that.
constexpr int kMostDoublings = 16;
}  // namespace

double FastWindow::begin(double window, const PathModel& path, double target) {
  low_ = 0;
  return std::min(window, std::max(path.product() + path.rate() * target, initial_));
}

double FastWindow::onRound(double window, const PathModel& path, double target) {
  double queue = toSeconds(path.queue());
  double step = this->step(window, queue, path, target);
  low_ = queue < target / 2 ? low_ + 1 : 0;
  if (step > 0 && low_ > kSteadyRounds)
    step *= std::exp2(std::min(low_ - kSteadyRounds, kMostDoublings));
  return std::max(window + std::min(step, kMostGrowth * window), least_);
}

double FastWindow::onUnusedRound(double window, const WanRound& round, const PathModel& path,
                                 double target) {
  low_ = 0;
  double mean = toSeconds(round.meanRtt() - path.base());
  if (round.tooSmall && mean < target / 2) return window * (1 + kMostGrowth);
  return std::min(window, std::max(window + step(window, mean, path, target), initial_));
}

double FastWindow::onMarkedRound(double window) {
  low_ = 0;
  return std::max(window * kMarkBeta, least_);
}

// What FAST's equation adds to the window. `queue`: RTT - baseRTT, seconds. Once the target is
// queued, losses do not widen the window: a buffer that overflows would overflow even more.
double FastWindow::step(double window, double queue, const PathModel& path, double target) const {
  double lost = queue < target ? std::min(path.loss(), kMostLoss) * window : 0;
  double alpha = path.rate() * target + lost;
  double base = toSeconds(path.base());
  return kGain * (window * base / (base + queue) + alpha - window);
}

bool WanStart::onRound(const WanRound& round, const PathModel& path, bool used) {
  if (used) pipe_.onRound(path.rate());
  // The mean is needed because a sender that does not fill its window sends bursts, and the first
  // packet of each burst sees no queue.
  Duration queue = FullPipe::queueOf(path.base());
  bool high = round.meanRtt() - path.base() >= kMeanQueue * queue;
  bool queued = round.samples >= kSamples && (path.queue() >= queue || high);
  bool lossy = round.packets >= PolicerDetector::kLeastLost && round.lost > kLoss * round.sent();
  return queued || (lossy && used && !pipe_.hasGrown()) || round.marked || pipe_.isFull();
}

double WanTarget::secondsAt(double rate) const {
  rate *= sharing_;
  double few = 2 * datagram_ / rate;
  double target = std::max(toSeconds(kQueue) * std::cbrt(kRate / rate), few);
  return std::clamp(target, toSeconds(kLeast), toSeconds(kMost));
}

}  // namespace braid
