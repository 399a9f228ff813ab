#include "scheduler/rate/window_controller.h"

#include <algorithm>

namespace braid {

namespace {
/// Bytes that a datagram of the initial window counts at most (RFC 9002 section 7.2: 14720 bytes
/// for ten datagrams).
constexpr uint64_t kInitialDatagram = 1472;
}  // namespace

WindowController::WindowController(uint64_t datagram, uint64_t initial, uint64_t minimum)
    : datagram_(datagram),
      initial_(initial),
      minimum_(minimum),
      window_(static_cast<double>(std::max(initialWindow(), minimumWindow()))) {}

uint64_t WindowController::initialWindow() const {
  return std::min(initial_ * datagram_, std::max(initial_ * kInitialDatagram, 2 * datagram_));
}

void WindowController::setWindow(double bytes) {
  window_ = std::max(bytes, static_cast<double>(minimumWindow()));
  onWindow();
}

void WindowController::onSent(uint64_t bytes, uint64_t inFlight, Time now) {
  Time last = std::max(lastSent_, lastAck_);
  bool first = last == kNone;
  lastSent_ = now;
  if (first || inFlight > bytes || now - last <= std::max<Duration>(kIdle, kIdleRtts * srtt_))
    return;
  double restart = static_cast<double>(initialWindow());
  if (window_ <= restart) return;
  threshold_ = std::max(threshold_ == std::numeric_limits<double>::infinity() ? 0 : threshold_,
                        window_ * kIdleThreshold);
  undo_.possible = false;
  setWindow(restart);
  onReset();
}

void WindowController::onAck(const AckSample& ack) {
  if (ack.srtt > Duration{}) srtt_ = ack.srtt;
  Duration since = lastAck_ == kNone ? Duration{} : ack.now - lastAck_;
  lastAck_ = ack.now;
  observe(ack);
  if (!isUtilised(ack)) return onUnused(since);
  bool recovers = ack.largestSentAt < std::max(lossAt_, markAt_);  // RFC 9002 section 7.3.2
  if (recovers) return;
  if (!inSlowStart()) return grow(ack);
  setWindow(std::min(window_ + static_cast<double>(ack.bytes), std::max(threshold_, window_)));
}

void WindowController::onLoss(const LossSample& loss) {
  if (loss.largestSentAt >= lossAt_) {
    undo_ = {true, window_, threshold_, lossAt_, 0};
    lossAt_ = loss.now;
    reduce(afterLoss());
  }
  if (loss.packets == 0) undo_.possible = false;
  if (loss.largestSentAt >= undo_.lossAt) undo_.lost += loss.packets;
  if (!loss.persistent) return;
  setWindow(0);
  lossAt_ = kNone;
  undo_.possible = false;
  onReset();
}

void WindowController::onMarks(uint64_t marks, Time largestSentAt, Time now) {
  if (marks == 0 || largestSentAt < markAt_ || largestSentAt < lossAt_) return;
  markAt_ = now;
  undo_.possible = false;
  reduce(afterMark());
}

void WindowController::onSpuriousLoss(Time sentAt, Time) {
  bool ofLastReduction = sentAt < lossAt_ && sentAt >= undo_.lossAt;
  if (!undo_.possible || !ofLastReduction || undo_.lost == 0 || --undo_.lost > 0) return;
  threshold_ = undo_.threshold;
  lossAt_ = undo_.lossAt;
  undo_.possible = false;
  setWindow(std::max(window_, undo_.window));
  onUndo();
}

void WindowController::reset(Time) {
  threshold_ = std::numeric_limits<double>::infinity();
  srtt_ = {};
  lastSent_ = lastAck_ = lossAt_ = markAt_ = kNone;
  undo_ = {};
  setWindow(static_cast<double>(initialWindow()));
  onReset();
}

void WindowController::resume(double window, Duration srtt) {
  srtt_ = srtt;
  setWindow(window);
  threshold_ = window_;
}

double WindowController::pacingRate() const {
  if (srtt_ <= Duration{}) return std::numeric_limits<double>::infinity();
  return (inSlowStart() ? kSlowStartPacingGain : kPacingGain) * window_ / toSeconds(srtt_);
}

// As NewReno::isUtilised(), but at least half the window must be in flight in any case: with a
// small window, the slack alone would make an idle subflow look as if it used its window.
bool WindowController::isUtilised(const AckSample& ack) const {
  auto inFlight = static_cast<double>(ack.inFlight);
  if (2 * inFlight < window_) return false;
  return inSlowStart() || !ack.appLimited || inFlight + kSlackDatagrams * datagram() >= window_;
}

void WindowController::reduce(double window) {
  onReduction();
  threshold_ = std::max(window, static_cast<double>(minimumWindow()));
  setWindow(threshold_);
}

}  // namespace braid
