#include "scheduler/rate/wan_model.h"

#include <algorithm>
#include <cmath>

namespace braid {

namespace {
/// A bound for the arithmetic; kMostGrowth binds long before.
constexpr int kMostDoublings = 16;
}  // namespace

double WanModel::begin(double window, const WanPath& path, double target) {
  low_ = 0;
  return std::min(window, std::max(path.product() + path.rate() * target, initial_));
}

double WanModel::onRound(double window, const WanPath& path, double target) {
  double queue = toSeconds(path.queue());
  double step = this->step(window, queue, path, target);
  low_ = queue < target / 2 ? low_ + 1 : 0;
  if (step > 0 && low_ > kSteadyRounds) step *= std::exp2(std::min(low_ - kSteadyRounds, kMostDoublings));
  return std::max(window + std::min(step, kMostGrowth * window), least_);
}

double WanModel::onUnusedRound(double window, const WanRound& round, const WanPath& path, double target) {
  low_ = 0;
  double mean = toSeconds(round.meanRtt() - path.base());
  if (round.tooSmall && mean < target / 2) return window * (1 + kMostGrowth);
  return std::min(window, std::max(window + step(window, mean, path, target), initial_));
}

double WanModel::onMarkedRound(double window) {
  low_ = 0;
  return std::max(window * kMarkBeta, least_);
}

// FAST's equation as what it adds to the window; `queue`: RTT - baseRTT, seconds. With the target queued, lost packets
// widen no window: a buffer that overflows would overflow the more for it.
double WanModel::step(double window, double queue, const WanPath& path, double target) const {
  double lost = queue < target ? std::min(path.loss(), kMostLoss) * window : 0;
  double alpha = path.rate() * target + lost;
  double base = toSeconds(path.base());
  return kGain * (window * base / (base + queue) + alpha - window);
}

}  // namespace braid
