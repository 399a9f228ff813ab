#include "simnet/tcp/cubic.h"

#include <algorithm>
#include <cmath>

namespace braid::sim::tcp {

// Cubic keeps fractions of a byte that window() does not show.
void CubicWindow::setWindow(double window, Duration srtt) {
  if (std::abs(window - static_cast<double>(cubic_.window())) >= 1) cubic_.resume(window, srtt);
}

double CubicWindow::grow(double window, const AckEvent& ack) {
  setWindow(window, ack.srtt);
  if (cubic_.inSlowStart()) cubic_.resume(window, ack.srtt);
  AckSample sample;
  sample.now = sample.largestSentAt =
      ack.now;  // Window never calls this for data sent before a reduction
  sample.bytes = ack.acked;
  sample.srtt = ack.srtt;
  sample.inFlight = ack.used ? cubic_.window() : 0;
  cubic_.onAck(sample);
  return std::max(window, static_cast<double>(cubic_.window()));
}

double CubicWindow::afterLoss(double window, double, Time now) {
  setWindow(window, Duration{});
  LossSample sample;
  sample.now = sample.largestSentAt = now;
  cubic_.onLoss(sample);
  return window * Cubic::kBeta;
}

void CubicWindow::onTimeout(Time now) {
  LossSample sample;
  sample.now = sample.largestSentAt = now;
  sample.persistent = true;
  cubic_.onLoss(sample);
}

}  // namespace braid::sim::tcp
