#include "simnet/tcp/window.h"

#include <algorithm>
#include <utility>

namespace braid::sim::tcp {

Window::Window(const Options& options, uint32_t mss, bool prr, uint32_t initial)
    : congestion_(makeCongestion(options.control, mss)),
      mss_(mss),
      initial_(options.initialWindow),
      minimum_(options.minimumWindow),
      slowStartLimit_(options.slowStartLimit),
      prrOn_(prr),
      growAfterRecovery_(options.growAfterRecovery),
      prrAfterMarks_(prr && options.prrAfterMarks),
      markAnswersLoss_(options.markAnswersLoss),
      size_(segments(initial)) {}

bool Window::endRecovery(uint64_t una) {
  if (givesWay_ && una >= markedUpTo_) {
    givesWay_ = false;
    size_ = threshold_;
  }
  if (phase_ == Phase::kOpen || una < recoverAt_) return false;
  if (phase_ == Phase::kFastRecovery) {
    size_ = threshold_;
    if (growAfterRecovery_) markedUpTo_ = 0;
  }
  phase_ = Phase::kOpen;
  lateAt_ = std::numeric_limits<uint64_t>::max();
  return true;
}

// If PRR is already reducing the window for a mark in this window of data, it continues.
void Window::beginFastRecovery(const Flight& flight, Time now) {
  bool within = flight.una < markedUpTo_;
  bool reacted = within && (markAnswersLoss_ || congestion_->markSuffices());
  bool goesOn = std::exchange(givesWay_, false) && within;
  if (!reacted)
    cutForLoss(flight, now);
  else if (!goesOn)
    threshold_ = size_;
  if (!goesOn) prr_.begin(flight.bytes);
  if (!prrOn_) size_ = threshold_;
  phase_ = Phase::kFastRecovery;
  recoverAt_ = markedUpTo_ = flight.next;
}

void Window::onDelivered(uint64_t delivered, uint64_t pipe) {
  if (prrOn_ && comesDown()) size_ = prr_.window(delivered, pipe, threshold_, mss_);
}

// Equation 4 of RFC 5681 applies only to the first timeout of a segment.
void Window::onTimeout(const Flight& flight, Time now) {
  if (lateAt_ != flight.una) {
    cutForLoss(flight, now);
    congestion_->onTimeout(now);
  }
  lateAt_ = flight.una;
  size_ = mss_;
  givesWay_ = false;
  phase_ = Phase::kTimeoutRecovery;
  recoverAt_ = markedUpTo_ = flight.next;
}

void Window::onRepairByProbe(const Flight& flight, Time now) {
  cutForLoss(flight, now);
  size_ = threshold_;
  givesWay_ = false;
  markedUpTo_ = flight.next;
}

// RFC 3168 section 6.1.2. PRR needs ACKs to reduce the window. With nothing in flight no ACK would
// come, and the window would stay at the bytes that this ACK delivered plus one segment.
bool Window::onMark(const Flight& flight, Time now) {
  if (phase_ != Phase::kOpen || flight.una <= markedUpTo_) return false;
  threshold_ = std::max(congestion_->afterMark(size_, now), segments(minimum_));
  markedUpTo_ = flight.next;
  givesWay_ = prrAfterMarks_ && flight.bytes > 0;
  if (givesWay_)
    prr_.begin(flight.bytes);
  else
    size_ = threshold_;
  return true;
}

// The window does not grow during the window of data after a reduction. As in Linux and ns-3, this
// holds after a mark, too.
void Window::grow(AckEvent ack, uint64_t una) {
  if (phase_ == Phase::kFastRecovery || (phase_ == Phase::kOpen && una <= markedUpTo_)) return;
  bool slowStart = size_ < threshold_;
  ack.used = usage_.used(size_, slowStart);
  if (!slowStart) {
    size_ = congestion_->grow(size_, ack);
    return;
  }
  uint32_t limit = phase_ == Phase::kTimeoutRecovery ? 1 : slowStartLimit_;
  double step = std::min(static_cast<double>(ack.acked), segments(limit));
  if (ack.used) size_ = std::min(size_ + step, threshold_);
}

bool Window::onIdle() {
  givesWay_ = false;
  if (size_ <= segments(initial_)) return false;
  size_ = segments(initial_);
  return true;
}

// Segments sent by limited transmit do not count as in flight here (RFC 5681 section 3.2, step 2).
void Window::cutForLoss(const Flight& flight, Time now) {
  double bytes = std::min(static_cast<double>(flight.bytes), size_);
  threshold_ = std::max(congestion_->afterLoss(size_, bytes, now), segments(minimum_));
}

}  // namespace braid::sim::tcp
