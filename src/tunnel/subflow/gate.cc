#include "tunnel/subflow/gate.h"

#include <algorithm>
#include <cmath>

namespace braid {

namespace {
/// Longest wait that is told to the scheduler: no path is that slow. Ours.
constexpr Duration kLongestWait = 10s;
}  // namespace

// To coupled controllers a path that rests is not there.
void Gate::setUsable(bool usable, Time now) {
  usable_ = usable;
  controller_->setUsable(usable_ && duty_ != PathDuty::kNone, now);
}

void Gate::setDuty(PathDuty duty, Time now) {
  duty_ = duty;
  setUsable(usable_, now);
}

bool Gate::takesData(bool overflow) const {
  bool mine = duty_ == PathDuty::kAll || (overflow && duty_ == PathDuty::kOverflow);
  return usable_ && mine && suppressedAt() == kNever;
}

/// When pacer and ceiling let the next datagram go, if it may be so many bytes ahead of the pacer.
Time Gate::spacedUntil(uint64_t ahead) const {
  return ceiling_ ? std::max(pacer_.nextSend(ahead), ceiling_->nextSend()) : pacer_.nextSend(ahead);
}

/// One more datagram of full size gets a number and stays within `window` bytes in flight.
bool Gate::hasRoom(uint64_t window) const {
  return !flight_.packets().full() && flight_.bytes() + mtu_.current() <= window;
}

Time Gate::opensAt(bool overflow) const {
  return takesData(overflow) && hasRoom(window()) ? spacedUntil() : kNever;
}

Time Gate::opensForTestAt() const {
  return usable_ && suppressedAt() == kNever && hasRoom(window()) ? spacedUntil() : kNever;
}

Time Gate::opensAheadAt() const {
  uint64_t more = std::min(kAheadDatagrams * mtu_.current(), window() / kAheadPart);
  return takesData() && hasRoom(window() + more) ? spacedUntil(more) : kNever;
}

Time Gate::opensForRepairAt(bool isMoved) const {
  Time opens = isMoved ? std::min(opensAt(), opensAheadAt()) : opensAt();
  bool isFirst = mayRetransmit_ && takesData() && !flight_.packets().full();
  return isFirst ? std::min(opens, spacedUntil()) : opens;
}

/// How long it should take until the gate opens. A full window opens when the oldest packet is acknowledged:
/// an estimate, which the next ACK corrects.
Duration Gate::wait(Time now) const {
  Time opens = spacedUntil();
  const SentPacket* oldest = flight_.oldestPacket();
  if (oldest && flight_.bytes() + mtu_.current() > window())
    opens = std::max(opens, oldest->sentAt + rtt_.smoothed());
  return std::clamp(opens, now, now + kLongestWait) - now;
}

PathView Gate::view(Time now, bool overflow) const {
  PathView v;
  v.srtt = rtt_.smoothed();
  v.rttvar = rtt_.variation();
  v.window = window();
  v.inFlight = flight_.bytes();
  v.rate = std::min(rate(), static_cast<double>(v.window) / toSeconds(std::max<Duration>(v.srtt, 1us)));
  v.usable = takesData(overflow);
  v.open = opensAt(overflow) <= now;
  v.ahead = v.open || isOpenAhead(now);
  if (v.usable && !v.open) v.wait = wait(now);
  return v;
}

double Gate::rate() const {
  return std::min(controller_->pacingRate(), ceiling_ ? ceiling_->rate() : INFINITY);
}

void Gate::onSent(size_t bytes, size_t headers, bool tracked, Time now) {
  if (ceiling_) ceiling_->onSent(bytes + headers, now);
  if (!tracked) return;
  controller_->onSent(bytes, flight_.bytes(), now);
  if (flight_.bytes() <= bytes) pace();  // what became of the last burst may say something of this one
  pacer_.onSent(bytes, now);
  mayRetransmit_ = false;
}

// The path starts anew last: what the silence lost, and how slow it was, tells nothing of the path that is
// back.
void Gate::onAck(const AckSample& ack, Time largestSentAt, bool startAnew) {
  controller_->onAck(ack);
  if (ack.marks > 0) controller_->onMarks(ack.marks, largestSentAt, ack.now);
  if (startAnew) controller_->reset(ack.now);
  pace();
}

void Gate::onLoss(const LossSample& loss) {
  uint64_t before = window();
  controller_->onLoss(loss);
  mayRetransmit_ |= window() < before;
  pace();
}

}  // namespace braid
