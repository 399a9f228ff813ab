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

const char* SubflowLife::deadWay(Time now) const {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  if (!suspect || refused_) return "";
  if (reached_) return "in";
  // Both probe now, at pauses of a second at most.
  bool hears = heardAt_ > suspect->since && now - heardAt_ < 3 * state::Suspect::kMaxProbeInterval;
  return hears && suspect->isStale(now) ? "out" : "";
}

// ---- what may change the state

bool SubflowLife::onProven() {
  if (state() != State::kValidating && state() != State::kClosed) return false;
  refused_ = false;
  state_ = state::Active{};
  return true;
}

bool SubflowLife::onAck(Time sentAt, bool samePath) {
  if (samePath || sentAt < unheardSince_) return onAnswer();
  reached_ = true;
  return false;
}

bool SubflowLife::onPacket(Duration pto, Time now) {
  heardAt_ = now;
  unheardSince_ = kNever;
  if (auto* active = std::get_if<state::Active>(&state_)) active->askedAt = kNever;
  if (reached_ && onAnswer()) return true;
  auto* suspect = std::get_if<state::Suspect>(&state_);
  pto = std::max<Duration>(pto, kSuspectSilence);
  if (suspect && now + pto < suspect->probeAt && !pingDue_) suspect->hasten(pto, now);
  return false;
}

// The path has been seen to work both ways.
bool SubflowLife::onAnswer() {
  reached_ = false;
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
  bool isBrief = now - std::min(progressAt, active.askedAt) < kSuspectSilence;
  if (active.ptos < state::Active::kSuspectPtos || isBrief) return false;
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

void SubflowLife::forgetPtos() {
  reached_ = false;
  unheardSince_ = kNever;
  if (auto* active = std::get_if<state::Active>(&state_)) *active = {};
}

void SubflowLife::onNewRoute(Time now) {
  if (auto* suspect = std::get_if<state::Suspect>(&state_)) suspect->probeAt = now;
}

// ---- probes

void SubflowLife::ask(Time now) {
  pingDue_ = true;
  if (auto* active = std::get_if<state::Active>(&state_)) active->askedAt = std::min(active->askedAt, now);
}

Time SubflowLife::askAt(Duration keepalive) const {
  const auto* active = std::get_if<state::Active>(&state_);
  if (!active || active->askedAt != kNever) return kNever;
  Time unheard = unheardSince_ == kNever ? kNever : unheardSince_ + keepalive;
  return doubted_ ? std::min(unheard, sentAt_ + keepalive) : unheard;
}

void SubflowLife::onPing(Duration again, Time now) {
  doubted_ |= pingedAt_ != Time::min() && now - pingedAt_ < again;
  pingedAt_ = now;
}

void SubflowLife::onSent(Time now) {
  pingDue_ = doubted_ = false;
  sentAt_ = now;
  unheardSince_ = std::min(unheardSince_, now);
}

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
// The answer to ask() has as long as the ACK of a packet that left then.
Time SubflowLife::ptoDeadline(const Flight& flight, const PathEstimate& path, Duration timeout) const {
  const auto* active = std::get_if<state::Active>(&state_);
  const SentPacket* oldest = flight.oldestPacket();
  if (!active || (!oldest && active->askedAt == kNever)) return kNever;
  Time progressAt = oldest ? flight.progressAt() : kNever;
  if (active->ptos > 0) {
    Time next = active->lastPtoAt + timeout * (1 << std::min(active->ptos - 1, 10));
    Time silent = std::min(progressAt, active->askedAt);
    return std::min(next, std::max(active->lastPtoAt + timeout, silent + kSuspectSilence));
  }
  Time due = active->askedAt == kNever ? kNever : active->askedAt + std::max<Duration>(timeout, path.quiet());
  return oldest ? std::min(due, std::max(oldest->sentAt + timeout, progressAt + path.quiet())) : due;
}

}  // namespace braid
