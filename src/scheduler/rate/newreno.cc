#include "scheduler/rate/newreno.h"

#include <algorithm>

namespace braid {

namespace {
/// In congestion avoidance, a sender that ran out of data counts as using its window when at most
/// kSlackDatagrams more datagrams would fill it: pacing and ACK clocking always leave some of it
/// open. RFC 9002 section 7.8 leaves the test to the sender.
constexpr uint64_t kSlackDatagrams = 3;
}  // namespace

NewReno::NewReno(uint64_t datagram, uint64_t initial)
    : datagram_(datagram), initial_(initial), window_(initialWindow()) {}

uint64_t NewReno::initialWindow() const {
  return std::min(initial_ * datagram_, std::max(initial_ * kInitialDatagram, 2 * datagram_));
}

void NewReno::onAck(const AckSample& ack) {
  if (ack.srtt > Duration{}) srtt_ = ack.srtt;
  if (inRecovery(ack.largestSentAt) || !isUtilised(ack)) return;
  if (inSlowStart()) {
    window_ += ack.bytes;
    return;
  }
  growth_ += datagram_ * ack.bytes;
  uint64_t step = growth_ / window_;
  growth_ -= step * window_;
  window_ += step;
}

void NewReno::onLoss(const LossSample& loss) {
  if (!inRecovery(loss.largestSentAt)) {
    reduce(loss.now);
    undo_.lost = 0;
    undo_.possible = true;
  }
  if (loss.packets == 0) undo_.possible = false;
  if (loss.largestSentAt > undo_.recoveryStart) undo_.lost += loss.packets;
  if (!loss.persistent) return;
  window_ = minimumWindow();
  growth_ = 0;
  recoveryStart_ = kNoRecovery;
  undo_.possible = false;
}

void NewReno::onMarks(uint64_t marks, Time largestSentAt, Time now) {
  if (marks == 0) return;
  if (!inRecovery(largestSentAt)) reduce(now);
  undo_.possible = false;
}

void NewReno::onSpuriousLoss(Time sentAt, Time) {
  bool ofLastReduction = sentAt <= recoveryStart_ && sentAt > undo_.recoveryStart;
  if (!undo_.possible || !ofLastReduction || undo_.lost == 0 || --undo_.lost > 0) return;
  window_ = std::max(window_, undo_.window);
  threshold_ = undo_.threshold;
  recoveryStart_ = undo_.recoveryStart;
  undo_.possible = false;
}

void NewReno::reset(Time) {
  *this = NewReno(datagram_, initial_);
}

double NewReno::pacingRate() const {
  if (srtt_ <= Duration{}) return std::numeric_limits<double>::infinity();
  double gain = inSlowStart() ? kSlowStartPacingGain : kPacingGain;
  return gain * static_cast<double>(window_) / toSeconds(srtt_);
}

bool NewReno::isUtilised(const AckSample& ack) const {
  if (inSlowStart() || !ack.appLimited) return 2 * ack.inFlight >= window_;
  return ack.inFlight + kSlackDatagrams * datagram_ >= window_;
}

void NewReno::reduce(Time now) {
  undo_.window = window_;
  undo_.threshold = threshold_;
  undo_.recoveryStart = recoveryStart_;
  recoveryStart_ = now;
  threshold_ = static_cast<uint64_t>(static_cast<double>(window_) * kLossReduction);
  window_ = std::max(threshold_, minimumWindow());
  growth_ = 0;
}

}  // namespace braid
