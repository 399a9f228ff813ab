#include "scheduler/rate/cubic.h"

#include <algorithm>
#include <cmath>

namespace braid {

// Section 4.2, with windows in datagrams. An epoch without a reduction before it has K = 0 and
// W_max = its first window (section 4.10). Persistent congestion is treated like a timeout (section
// 4.8).
void Cubic::beginEpoch(double window, Time now) {
  at_.running = true;
  at_.epoch = now;
  at_.wEst = window;
  if (at_.wMax <= window) {
    at_.wMax = window;
    at_.k = 0;
  } else {
    at_.k = std::cbrt((at_.wMax - window) / c());
  }
}

double Cubic::wCubic(double t) const {
  double d = t - at_.k;
  return c() * d * d * d + at_.wMax;
}

void Cubic::grow(const AckSample& ack) {
  double window = cwnd() / datagram();
  double acked = static_cast<double>(ack.bytes) / datagram();
  if (!at_.running) beginEpoch(window, ack.now);
  double t = toSeconds(ack.now - at_.epoch);
  at_.wEst += (at_.wEst < at_.prior ? kAlpha : lateAlpha_) * share_ * share_ * acked / window;
  if (wCubic(t) < at_.wEst) return setWindow(std::max(at_.wEst, window) * datagram());
  double target = std::clamp(wCubic(t + toSeconds(srtt())), window, kMaxTarget * window);
  setWindow((window + (target - window) * acked / window) * datagram());
}

// Section 4.7: a flow that is reduced before it has reached its last maximum leaves room to others.
void Cubic::onReduction() {
  before_ = at_;
  double window = cwnd() / datagram();
  at_.wMax = window < at_.wMax ? window * (1 + kBeta) / 2 : window;
  at_.prior = window;
  at_.running = false;
}

// Section 5.8: time in which the window was not used does not count in t.
void Cubic::onUnused(Duration time) {
  if (at_.running) at_.epoch += time;
}

}  // namespace braid
