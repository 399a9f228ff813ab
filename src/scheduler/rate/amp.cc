#include "scheduler/rate/amp.h"

#include <algorithm>

namespace braid {

double ampBeta(double bdp, double threshold) {
  return std::max(2.0, (bdp + threshold) / threshold);
}

// A round is one window of data of the initial subflow (section 4.2: consecutive RTTs). A round in
// which there was not enough data to fill the window says nothing about congestion.
void Amp::onAck(const AckSample& ack) {
  CoupledController::onAck(ack);
  if (!shared().isInitial(member())) {
    roundBegan_ = kNone;
    return;
  }
  if (roundBegan_ == kNone) roundBegan_ = ack.now;
  marked_ |= ack.marks > 0;
  if (ack.largestSentAt < roundBegan_) return;
  if (shared().suppressing() || !unused_) {
    shared().onRound(marked_, options_.gamma, options_.tau, ack.now);
  }
  roundBegan_ = ack.now;
  marked_ = unused_ = false;
}

void Amp::grow(const AckSample& ack) {
  setWindow(cwnd() +
            datagram() * static_cast<double>(ack.bytes) / std::max(shared().totalWindow(), cwnd()));
}

void Amp::onReset() {
  CoupledController::onReset();
  roundBegan_ = kNone;
  marked_ = unused_ = false;
}

}  // namespace braid
