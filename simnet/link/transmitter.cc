#include "simnet/link/transmitter.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace braid {

namespace {

// No packet takes longer than this (about 11 days), so that times cannot overflow.
constexpr double kLongestNs = 1e15;

ExactTime plus(ExactTime t, double ns) {
  double sum = t.fraction + std::min(ns, kLongestNs);
  double whole = std::floor(sum);
  return {t.time + Duration{static_cast<Duration::rep>(whole)}, sum - whole};
}

double nanoseconds(Duration d) {
  return static_cast<double>(d.count());
}

}  // namespace

size_t defaultQueueBytes(const LinkOptions& options) {
  constexpr double kLeastBytes = 64 * 1024;
  constexpr double kSeconds = 0.1;
  double rate = options.trace.empty() ? options.rateBitsPerSecond : 0;
  for (const RateStep& step : options.trace) rate = std::max(rate, step.bitsPerSecond);
  return static_cast<size_t>(std::max(kLeastBytes, rate / 8 * kSeconds));
}

Transmitter::Transmitter(const LinkOptions& options, Time origin) : origin_(origin) {
  if (options.trace.empty()) {
    rate_ = options.rateBitsPerSecond / 1e9;
    return;
  }
  double ns = 0;
  double bits = 0;
  for (const RateStep& step : options.trace) {
    double perNs = step.bitsPerSecond / 1e9;
    ns += nanoseconds(step.duration);
    bits += nanoseconds(step.duration) * perNs;
    steps_.push_back({ns, bits, perNs});
  }
  assert(bits > 0 && "a trace needs a step with a duration and a rate");
}

double Transmitter::bitsInLoop(double ns) const {
  auto step = std::upper_bound(steps_.begin(), steps_.end(), ns,
                               [](double v, const Step& s) { return v < s.endNs; });
  if (step == steps_.end()) return steps_.back().endBits;
  return step->endBits - (step->endNs - ns) * step->bitsPerNs;
}

ExactTime Transmitter::finish(ExactTime start, double bits) const {
  if (unlimited() || bits <= 0) return start;
  if (steps_.empty()) return plus(start, bits / rate_);
  Duration loop{static_cast<Duration::rep>(steps_.back().endNs)};
  double ns = nanoseconds((start.time - origin_) % loop) + start.fraction;
  double target = bitsInLoop(ns) + bits;
  double loops =
      std::ceil(target / steps_.back().endBits) - 1;  // whole loops before the one it ends in
  target -= loops * steps_.back().endBits;
  auto step = std::lower_bound(steps_.begin(), steps_.end(), target,
                               [](const Step& s, double v) { return s.endBits < v; });
  if (step == steps_.end()) --step;  // rounding only
  double wait = loops * steps_.back().endNs + step->endNs - ns;
  if (step->bitsPerNs > 0) wait -= (step->endBits - target) / step->bitsPerNs;
  return plus(start, std::max(wait, 0.0));
}

double Transmitter::bitsBetween(ExactTime from, ExactTime to) const {
  double ns = nanoseconds(to.time - from.time) + to.fraction - from.fraction;
  if (steps_.empty()) return ns * rate_;
  Duration loop{static_cast<Duration::rep>(steps_.back().endNs)};
  auto bitsAt = [&](ExactTime t) {
    Duration since = t.time - origin_;
    return static_cast<double>(since / loop) * steps_.back().endBits +
           bitsInLoop(nanoseconds(since % loop) + t.fraction);
  };
  return bitsAt(to) - bitsAt(from);
}

}  // namespace braid
