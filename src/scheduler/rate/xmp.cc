#include "scheduler/rate/xmp.h"

namespace braid {

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
