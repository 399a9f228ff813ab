#include "tunnel/subflow/flight.h"

namespace braid {

Flight::~Flight() {
  while (!sent_.empty()) popFront();
}

PacketNumber Flight::oldest() const {
  return sent_.nextInFlight(sent_.first());
}

const SentPacket* Flight::oldestPacket() const {
  PacketNumber pn = oldest();
  return pn < sent_.next() ? &sent_.at(pn) : nullptr;
}

bool Flight::isDataMissing(PacketNumber pn) const {
  if (!sent_.contains(pn)) return false;
  const SentPacket& p = sent_.at(pn);
  return std::any_of(p.data.data(), p.data.data() + p.dataCount, [](const Datum* d) { return !d->done; });
}

SentPacket& Flight::push(size_t bytes, bool tracked, Time now) {
  // Nobody acknowledges what is not tracked: a subflow that only answers must not run out of numbers.
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

bool Flight::skip(Time now) {
  if (sent_.full()) return false;
  SentPacket& p = sent_.push();
  p.sentAt = now;
  sent_.setState(sent_.next() - 1, SentPacket::State::kSkipped);
  return true;
}

void Flight::onAcked(PacketNumber pn) {
  SentPacket& p = sent_.at(pn);
  bool wasInFlight = p.state == SentPacket::State::kInFlight;
  loss_.onAcked(pn);
  if (wasInFlight) {
    bytes_ -= p.bytes;
  } else if (!p.ofOldRoute) {
    loss_.onSpurious();
  }
  for (size_t i = 0; i < p.dataCount; ++i) {
    ledger_.onDelivered(p.data[i], wasInFlight && !p.moved);
    ledger_.forget(p.data[i]);
  }
  p.dataCount = 0;
  sent_.setState(pn, SentPacket::State::kAcked);
}

void Flight::trim(Duration keep, Time now) {
  keep_ = keep;
  forgetSettled(now);
}

void Flight::forgetSettled(Time now) {
  while (!sent_.empty()) {
    const SentPacket& p = sent_.at(sent_.first());
    if (p.state == SentPacket::State::kInFlight) break;
    bool crowded = sent_.next() - sent_.first() > SentPackets::kMaxSpan / 2;
    if (p.state == SentPacket::State::kLost && !crowded && now - p.sentAt < keep_) break;
    popFront();
  }
}

void Flight::popFront() {
  SentPacket& p = sent_.at(sent_.first());
  for (size_t i = 0; i < p.dataCount; ++i) ledger_.forget(p.data[i]);
  sent_.popFront();
}

void Flight::loseData(SentPacket& p, Time now) {
  if (p.moved) return;
  for (size_t i = 0; i < p.dataCount; ++i) ledger_.onLost(p.data[i], now, p.role == SentPacket::Role::kCopy);
}

void Flight::moveData(SentPacket& p, Time now) {
  if (p.moved) return;
  p.moved = true;
  for (size_t i = 0; i < p.dataCount; ++i) ledger_.onMoved(p.data[i], now, p.role == SentPacket::Role::kCopy);
}

void Flight::recoverData(PacketNumber pn) {
  const SentPacket& p = sent_.at(pn);
  for (size_t i = 0; i < p.dataCount; ++i) ledger_.onRecovered(p.data[i]);
}

void Flight::giveUpData(Drop cause) {
  for (PacketNumber pn = std::max(givenUpTo_, sent_.first()); pn < sent_.next(); ++pn) {
    SentPacket& p = sent_.at(pn);
    for (size_t i = 0; i < p.dataCount; ++i) ledger_.giveUp(p.data[i], cause);
  }
  givenUpTo_ = sent_.next();
}

}  // namespace braid
