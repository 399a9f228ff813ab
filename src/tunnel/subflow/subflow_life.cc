#include "tunnel/subflow/subflow_life.h"

#include <algorithm>
#include <utility>

namespace braid {

bool SubflowLife::isUnproven() const {
  const auto* closed = std::get_if<state::Closed>(&state_);
  return state() == State::kValidating || (closed && closed->reopened);
}

bool SubflowLife::isSilent() const {
  const auto* active = std::get_if<state::Active>(&state_);
  return active ? active->ptos > 0 : state() == State::kSuspect;
}

bool SubflowLife::isStale(Time now) const {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  return suspect && suspect->isStale(now);
}

const char* SubflowLife::name(Time now) const {
  switch (state()) {
    case State::kValidating:
      return "validating";
    case State::kActive:
      return "active";
    case State::kSuspect:
      return std::get<state::Suspect>(state_).hasFailed(now) ? "failed" : "suspect";
    case State::kClosed:
      return isUnproven() ? "validating" : "closed";
  }
  return "";
}

// ---- what may change the state

bool SubflowLife::onProven() {
  if (state() != State::kValidating && state() != State::kClosed) return false;
  refused_ = false;
  state_ = state::Active{};
  return true;
}

bool SubflowLife::onAck() {
  if (auto* active = std::get_if<state::Active>(&state_)) active->ptos = 0;
  if (state() != State::kSuspect || refused_) return false;
  state_ = state::Active{};
  return true;
}

bool SubflowLife::onPto(Duration pto, Time progressAt, Time now) {
  auto& active = std::get<state::Active>(state_);
  ++active.ptos;
  active.lastPtoAt = now;
  pingDue_ = true;
  if (active.ptos < state::Active::kSuspectPtos || now - progressAt < kSuspectSilence) return false;
  state_ = state::Suspect(pto, now);
  return true;
}

bool SubflowLife::onPeerStatus(bool refuses, Duration pto, Time now) {
  bool wasRefused = std::exchange(refused_, refuses);
  bool isNew = refuses && isUsable();
  if (isNew) state_ = state::Suspect(pto, now);
  auto* suspect = std::get_if<state::Suspect>(&state_);
  if (suspect && wasRefused && !refuses) suspect->probeAt = now;
  return isNew;
}

bool SubflowLife::onSendError(Duration pto, Time now) {
  bool isNew = isUsable();
  if (isNew) state_ = state::Suspect(pto, now);
  if (auto* suspect = std::get_if<state::Suspect>(&state_)) suspect->probeAt = now + suspect->probeInterval;
  return isNew;
}

bool SubflowLife::close() {
  pingDue_ = false;
  if (auto* closed = std::get_if<state::Closed>(&state_)) {
    closed->reopened = false;
    return false;
  }
  state_ = state::Closed{};
  return true;
}

// ---- what does not

bool SubflowLife::reopen() {
  auto* closed = std::get_if<state::Closed>(&state_);
  if (closed) closed->reopened = true;
  return closed != nullptr;
}

void SubflowLife::onPacket(Duration pto, Time now) {
  auto* suspect = std::get_if<state::Suspect>(&state_);
  pto = std::max<Duration>(pto, kSuspectSilence);
  if (suspect && now + pto < suspect->probeAt && !pingDue_) suspect->hasten(pto, now);
}

void SubflowLife::forgetPtos() {
  if (auto* active = std::get_if<state::Active>(&state_)) active->ptos = 0;
}

void SubflowLife::onNewRoute(Time now) {
  if (auto* suspect = std::get_if<state::Suspect>(&state_)) suspect->probeAt = now;
}

// ---- probes

Time SubflowLife::probeAt() const {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  return suspect && !refused_ ? suspect->probeAt : kNever;
}

void SubflowLife::onProbe(Time now) {
  pingDue_ = true;
  std::get<state::Suspect>(state_).onProbe(now);
}

// RFC 9002 section 6.2 starts the timer at the last sending; a tunnel that sends all the time would then
// notice silence only when its window is full. Here it starts at the oldest packet that should have been
// acknowledged, and waits out jitter. The PTO that may make the path suspect does not wait for longer than that takes.
Time SubflowLife::ptoDeadline(const Flight& flight, const PathEstimate& path, Duration timeout) const {
  const auto* active = std::get_if<state::Active>(&state_);
  const SentPacket* oldest = flight.oldestPacket();
  if (!active || !oldest) return kNever;
  if (active->ptos > 0) {
    Time next = active->lastPtoAt + timeout * (1 << std::min(active->ptos - 1, 10));
    return std::min(next, std::max(active->lastPtoAt + timeout, flight.progressAt() + kSuspectSilence));
  }
  return std::max(oldest->sentAt + timeout, flight.progressAt() + path.quiet());
}

}  // namespace braid
