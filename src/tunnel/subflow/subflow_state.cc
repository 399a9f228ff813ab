#include "tunnel/subflow/subflow_state.h"

#include <algorithm>
#include <utility>

namespace braid {

bool SubflowStateMachine::isUnproven() const {
  const auto* closed = std::get_if<state::Closed>(&state_);
  return state() == State::kValidating || (closed && closed->reopened);
}

bool SubflowStateMachine::isSilent() const {
  const auto* active = std::get_if<state::Active>(&state_);
  return active ? active->ptos > 0 : state() == State::kSuspect;
}

bool SubflowStateMachine::isStale(Time now) const {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  return suspect && suspect->isStale(now);
}

const char* SubflowStateMachine::name(Time now) const {
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

const char* SubflowStateMachine::deadWay(Time now) const {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  if (!suspect || refused_) return "";
  if (reached_) return "in";
  // When only one direction is dead, both sides probe now, at pauses of at most kMaxProbeInterval.
  bool hears = heardAt_ > suspect->since && now - heardAt_ < 3 * state::Suspect::kMaxProbeInterval;
  return hears && suspect->isStale(now) ? "out" : "";
}

Duration SubflowStateMachine::down(Time now) const {
  if (const auto* suspect = std::get_if<state::Suspect>(&state_)) return now - suspect->silentSince;
  if (const auto* closed = std::get_if<state::Closed>(&state_)) return now - closed->downSince;
  return {};
}

Time SubflowStateMachine::tellAt() const {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  if (!suspect || suspect->isTold) return kNever;
  return std::max(suspect->since, suspect->silentSince + state::Suspect::kBlip);
}

bool SubflowStateMachine::isAfterBlip() const {
  const auto* active = std::get_if<state::Active>(&state_);
  return active && active->afterBlip;
}

// ---- may change the state

bool SubflowStateMachine::onProven() {
  if (state() != State::kValidating && state() != State::kClosed) return false;
  refused_ = false;
  state_ = state::Active{};
  return true;
}

bool SubflowStateMachine::onAck(Time sentAt, bool samePath) {
  if (samePath || sentAt < unheardSince_) return onAnswer();
  reached_ = true;
  return false;
}

bool SubflowStateMachine::onPacket(Duration pto, Time now) {
  heardAt_ = now;
  unheardSince_ = kNever;
  if (auto* active = std::get_if<state::Active>(&state_)) active->askedAt = kNever;
  if (reached_ && onAnswer()) return true;
  auto* suspect = std::get_if<state::Suspect>(&state_);
  pto = std::max<Duration>(pto, kSuspectSilence);
  if (suspect && now + pto < suspect->probeAt && !pingDue_) suspect->hasten(pto, now);
  return false;
}

// The path has been shown to work in both directions.
bool SubflowStateMachine::onAnswer() {
  reached_ = false;
  if (auto* active = std::get_if<state::Active>(&state_)) active->ptos = 0;
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  if (!suspect || refused_) return false;
  bool isBlip = !suspect->isTold;
  blips_ += isBlip;
  state_ = state::Active{.lastPtoAt = {}, .afterBlip = isBlip};
  return true;
}

bool SubflowStateMachine::onPto(Duration pto, Time progressAt, Time now) {
  auto& active = std::get<state::Active>(state_);
  ++active.ptos;
  active.lastPtoAt = now;
  pingDue_ = true;
  if (now >= silenceUntil_) {
    silence_ = kSuspectSilence;
    silenceUntil_ = kNever;
  }
  Time silentSince = std::min(progressAt, active.askedAt);
  if (active.ptos < state::Active::kSuspectPtos || now - silentSince < silence_) return false;
  state_ = state::Suspect(pto, silentSince, now);
  return true;
}

bool SubflowStateMachine::onPeerStatus(bool refuses, Duration pto, Time now) {
  bool wasRefused = std::exchange(refused_, refuses);
  bool isNew = refuses && isUsable();
  if (isNew) state_ = state::Suspect(pto, now, now);
  auto* suspect = std::get_if<state::Suspect>(&state_);
  if (suspect && wasRefused && !refuses) suspect->probeAt = now;
  return isNew;
}

bool SubflowStateMachine::onSendError(Duration pto, Time now) {
  bool isNew = isUsable();
  if (isNew) state_ = state::Suspect(pto, now, now);
  if (auto* suspect = std::get_if<state::Suspect>(&state_))
    suspect->probeAt = now + suspect->probeInterval;
  return isNew;
}

bool SubflowStateMachine::close(Time now) {
  pingDue_ = false;
  if (auto* closed = std::get_if<state::Closed>(&state_)) {
    closed->reopened = false;
    return false;
  }
  state_ = state::Closed{.downSince = now - down(now)};
  return true;
}

// ---- do not change the state

bool SubflowStateMachine::reopen() {
  auto* closed = std::get_if<state::Closed>(&state_);
  if (closed) closed->reopened = true;
  return closed != nullptr;
}

void SubflowStateMachine::onLate(Time sentAt, Time now) {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  if (!suspect || sentAt >= suspect->since) return;
  Duration late = now - suspect->silentSince;
  if (late >= state::Suspect::kBlip) return;
  silence_ = std::clamp<Duration>(2 * late, silence_, state::Suspect::kBlip);
  silenceUntil_ = now + kLateKept;
}

void SubflowStateMachine::forgetPtos() {
  reached_ = false;
  unheardSince_ = kNever;
  if (auto* active = std::get_if<state::Active>(&state_)) *active = {};
}

void SubflowStateMachine::onNewRoute(Time now) {
  if (auto* suspect = std::get_if<state::Suspect>(&state_)) suspect->probeAt = now;
}

// ---- probes

void SubflowStateMachine::ask(Time now) {
  pingDue_ = true;
  if (auto* active = std::get_if<state::Active>(&state_))
    active->askedAt = std::min(active->askedAt, now);
}

Time SubflowStateMachine::askAt(Duration keepalive) const {
  const auto* active = std::get_if<state::Active>(&state_);
  if (!active || active->askedAt != kNever) return kNever;
  Time unheard = unheardSince_ == kNever ? kNever : unheardSince_ + keepalive;
  return doubted_ ? std::min(unheard, sentAt_ + keepalive) : unheard;
}

void SubflowStateMachine::onPing(Duration again, Time now) {
  doubted_ |= pingedAt_ != Time::min() && now - pingedAt_ < again;
  pingedAt_ = now;
}

void SubflowStateMachine::onSent(Time now) {
  pingDue_ = doubted_ = false;
  sentAt_ = now;
  unheardSince_ = std::min(unheardSince_, now);
}

Time SubflowStateMachine::probeAt() const {
  const auto* suspect = std::get_if<state::Suspect>(&state_);
  return suspect && !refused_ ? suspect->probeAt : kNever;
}

void SubflowStateMachine::onProbe(Time now) {
  pingDue_ = true;
  std::get<state::Suspect>(state_).onProbe(now);
}

// RFC 9002 section 6.2 starts the timer when the last packet is sent. A tunnel that sends all the
// time would then notice silence only when its window is full. Here the timer starts at the oldest
// packet that should have been acknowledged, and it allows for jitter. A later PTO, which may make
// the path suspect, backs off only until `silence_` is over. The answer to ask() has as much
// time as the ACK of a packet that was sent at that moment.
Time SubflowStateMachine::ptoDeadline(const InFlightTracker& flight, const PathEstimate& path,
                                      Duration timeout) const {
  const auto* active = std::get_if<state::Active>(&state_);
  const SentPacket* oldest = flight.oldestPacket();
  if (!active || (!oldest && active->askedAt == kNever)) return kNever;
  Time progressAt = oldest ? flight.progressAt() : kNever;
  if (active->ptos > 0) {
    Time next = active->lastPtoAt + timeout * (1 << std::min(active->ptos - 1, 10));
    Time silent = std::min(progressAt, active->askedAt);
    return std::min(next, std::max(active->lastPtoAt + timeout, silent + silence_));
  }
  Time due = active->askedAt == kNever
                 ? kNever
                 : active->askedAt + std::max<Duration>(timeout, path.quiet());
  return oldest ? std::min(due, std::max(oldest->sentAt + timeout, progressAt + path.quiet()))
                : due;
}

}  // namespace braid
