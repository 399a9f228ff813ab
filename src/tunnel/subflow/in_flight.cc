#include "tunnel/subflow/in_flight.h"

namespace braid {

InFlightTracker::~InFlightTracker() {
  while (!sent_.empty()) popFront();
}

PacketNumber InFlightTracker::oldest() const {
  return sent_.nextInFlight(sent_.first());
}

const SentPacket* InFlightTracker::oldestPacket() const {
  PacketNumber pn = oldest();
  return pn < sent_.next() ? &sent_.at(pn) : nullptr;
}

bool InFlightTracker::isDataMissing(PacketNumber pn) const {
  if (!sent_.contains(pn)) return false;
  const SentPacket& p = sent_.at(pn);
  return std::any_of(p.data.data(), p.data.data() + p.dataCount,
                     [](UnitRef d) { return !d->isDone(); });
}

SentPacket& InFlightTracker::push(size_t bytes, bool tracked, Time now) {
  // Packets that are not tracked are never acknowledged. They are forgotten here, so that a subflow
  // that only answers does not run out of packet numbers.
  if (!tracked) forgetSettled(now);
  SentPacket& p = sent_.push();
  p.sentAt = now;
  p.bytes = static_cast<uint32_t>(bytes);
  if (tracked) {
    sent_.setState(sent_.next() - 1, SentPacket::State::kInFlight);
    if (bytes_ == 0) progressAt_ = now;
    bytes_ += bytes;
  }
  return p;
}

bool InFlightTracker::skip(Time now) {
  if (sent_.full()) return false;
  SentPacket& p = sent_.push();
  p.sentAt = now;
  sent_.setState(sent_.next() - 1, SentPacket::State::kSkipped);
  return true;
}

void InFlightTracker::onAcked(PacketNumber pn) {
  SentPacket& p = sent_.at(pn);
  bool wasInFlight = p.state == SentPacket::State::kInFlight;
  loss_.onAcked(pn);
  if (wasInFlight) {
    bytes_ -= p.bytes;
  } else if (!p.ofOldRoute) {
    loss_.onSpurious();
  }
  for (size_t i = 0; i < p.dataCount; ++i) {
    dataTracker_.onDelivered(p.data[i], wasInFlight && !p.moved);
    dataTracker_.release(p.data[i]);
  }
  p.dataCount = 0;
  sent_.setState(pn, SentPacket::State::kAcked);
}

void InFlightTracker::trim(Duration keep, Time now) {
  keep_ = keep;
  forgetSettled(now);
}

void InFlightTracker::forgetSettled(Time now) {
  while (!sent_.empty()) {
    const SentPacket& p = sent_.at(sent_.first());
    if (p.state == SentPacket::State::kInFlight) break;
    bool crowded = sent_.next() - sent_.first() > SentPackets::kMaxSpan / 2;
    if (p.state == SentPacket::State::kLost && !crowded && now - p.sentAt < keep_) break;
    popFront();
  }
}

void InFlightTracker::popFront() {
  SentPacket& p = sent_.at(sent_.first());
  for (size_t i = 0; i < p.dataCount; ++i) dataTracker_.release(p.data[i]);
  sent_.popFront();
}

void InFlightTracker::loseData(SentPacket& p, Time now) {
  if (p.moved) return;
  for (size_t i = 0; i < p.dataCount; ++i)
    dataTracker_.onLost(p.data[i], now, p.role == SentPacket::Role::kCopy);
}

void InFlightTracker::moveData(SentPacket& p, Time now) {
  if (p.moved) return;
  p.moved = true;
  for (size_t i = 0; i < p.dataCount; ++i)
    dataTracker_.onMoved(p.data[i], now, p.role == SentPacket::Role::kCopy);
}

void InFlightTracker::recoverData(PacketNumber pn) {
  const SentPacket& p = sent_.at(pn);
  for (size_t i = 0; i < p.dataCount; ++i) dataTracker_.onRecovered(p.data[i]);
}

void InFlightTracker::giveUpData(Drop cause) {
  for (PacketNumber pn = std::max(givenUpTo_, sent_.first()); pn < sent_.next(); ++pn) {
    SentPacket& p = sent_.at(pn);
    for (size_t i = 0; i < p.dataCount; ++i) dataTracker_.giveUp(p.data[i], cause);
  }
  givenUpTo_ = sent_.next();
}

}  // namespace braid
