#include "tunnel/subflow/admission.h"

#include <algorithm>
#include <cmath>

namespace braid {

namespace {
/// Longest wait that is reported to the scheduler: no path is that slow.
constexpr Duration kLongestWait = 10s;
}  // namespace

// For coupled controllers, a path with the role kNone does not exist.
void SendAdmission::setUsable(bool usable, Time now) {
  usable_ = usable;
  controller_->setUsable(usable_ && role_ != PathRole::kNone, now);
}

void SendAdmission::setRole(PathRole role, Time now) {
  role_ = role;
  setUsable(usable_, now);
}

bool SendAdmission::takesData(bool overflow) const {
  bool mine = role_ == PathRole::kAll || (overflow && role_ == PathRole::kOverflow);
  return usable_ && mine && suppressedAt() == kNever;
}

/// When pacer and ceiling allow the next datagram, if it may be `ahead` bytes ahead of the pacer.
Time SendAdmission::spacedUntil(uint64_t ahead) const {
  return ceiling_ ? std::max(pacer_.nextSend(ahead), ceiling_->nextSend()) : pacer_.nextSend(ahead);
}

/// Whether a packet number is free and one more datagram of full size stays within `window` bytes
/// in flight.
bool SendAdmission::hasRoom(uint64_t window) const {
  return !inFlightTracker_.packets().full() && inFlightTracker_.bytes() + mtu_.current() <= window;
}

Time SendAdmission::opensAt(bool overflow) const {
  return takesData(overflow) && hasRoom(window()) ? spacedUntil() : kNever;
}

Time SendAdmission::opensForTestAt() const {
  return usable_ && suppressedAt() == kNever && hasRoom(window()) ? spacedUntil() : kNever;
}

Time SendAdmission::opensAheadAt() const {
  uint64_t more = std::min(kAheadDatagrams * mtu_.current(), window() / kAheadPart);
  return takesData() && hasRoom(window() + more) ? spacedUntil(more) : kNever;
}

Time SendAdmission::opensForRepairAt(bool isMoved) const {
  Time opens = isMoved ? std::min(opensAt(), opensAheadAt()) : opensAt();
  bool isFirst = mayRetransmit_ && takesData() && !inFlightTracker_.packets().full();
  return isFirst ? std::min(opens, spacedUntil()) : opens;
}

/// How long it should take until the next datagram may leave. A full window opens when the oldest
/// packet is acknowledged; that time is an estimate, which the next ACK corrects.
Duration SendAdmission::wait(Time now) const {
  Time opens = spacedUntil();
  const SentPacket* oldest = inFlightTracker_.oldestPacket();
  if (oldest && inFlightTracker_.bytes() + mtu_.current() > window())
    opens = std::max(opens, oldest->sentAt + rtt_.smoothed());
  return std::clamp(opens, now, now + kLongestWait) - now;
}

PathView SendAdmission::view(Time now, bool overflow) const {
  PathView v;
  v.srtt = rtt_.smoothed();
  v.rttvar = rtt_.variation();
  v.window = window();
  v.inFlight = inFlightTracker_.bytes();
  v.rate =
      std::min(rate(), static_cast<double>(v.window) / toSeconds(std::max<Duration>(v.srtt, 1us)));
  v.usable = takesData(overflow);
  v.open = opensAt(overflow) <= now;
  v.ahead = v.open || isOpenAhead(now);
  if (v.usable && !v.open) v.wait = wait(now);
  return v;
}

double SendAdmission::rate() const {
  return std::min(controller_->pacingRate(), ceiling_ ? ceiling_->rate() : INFINITY);
}

void SendAdmission::onSent(size_t bytes, size_t headers, bool tracked, Time now) {
  if (ceiling_) ceiling_->onSent(bytes + headers, now);
  if (!tracked) return;
  controller_->onSent(bytes, inFlightTracker_.bytes(), now);
  if (inFlightTracker_.bytes() <= bytes)
    pace();  // the path was idle: what became of the last burst may change burst()
  pacer_.onSent(bytes, now);
  mayRetransmit_ = false;
}

// The controller is reset last: losses and delays of the silence say nothing about the path that is
// back.
void SendAdmission::onAck(const AckSample& ack, Time largestSentAt, bool startAnew) {
  controller_->onAck(ack);
  if (ack.marks > 0) controller_->onMarks(ack.marks, largestSentAt, ack.now);
  if (startAnew) controller_->reset(ack.now);
  pace();
}

void SendAdmission::onLoss(const LossSample& loss) {
  uint64_t before = window();
  controller_->onLoss(loss);
  mayRetransmit_ |= window() < before;
  pace();
}

}  // namespace braid
