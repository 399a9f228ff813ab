#include "scheduler/rate/rivals/coupled.h"

#include <algorithm>

namespace braid {

double Lia::increase(const ControllerGroup& group, double window, double acked, double datagram) {
  double total = std::max(group.totalWindow(), window);
  return acked * datagram * std::min(group.alpha() / total, 1 / window);
}

void Lia::grow(const AckSample& ack) {
  setWindow(cwnd() + increase(group(), cwnd(), static_cast<double>(ack.bytes), datagram()));
}

void Dcm::observe(const AckSample& ack) {
  CoupledController::observe(ack);
  marks_.onAck(ack, datagram());
}

void Dcm::grow(const AckSample& ack) {
  setWindow(cwnd() + Lia::increase(group(), cwnd(), static_cast<double>(ack.bytes), datagram()));
}

void Dcm::onReset() {
  CoupledController::onReset();
  marks_ = {};
}

void Xmp::grow(const AckSample& ack) {
  if (ack.largestSentAt < windowBegan_) return;
  windowBegan_ = ack.now;
  setWindow(cwnd() + group().delta(member()) * datagram());
}

void Xmp::onReset() {
  CoupledController::onReset();
  windowBegan_ = Time::min();
}

}  // namespace braid
