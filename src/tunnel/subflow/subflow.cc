#include "tunnel/subflow/subflow.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {
size_t datagramLimit(const Route& route, size_t ipPacket) {
  return ipPacket == 0 ? 0 : ipPacket - outerHeaders(route);
}
}  // namespace

Subflow::Subflow(uint8_t id, std::string uplink, const Route& route, bool trusted,
                 const SubflowOptions& options, SubflowEvents& events, DataLedger& ledger,
                 ControllerGroup& group, Random& random, Time now)
    : id_(id),
      uplink_(std::move(uplink)),
      peerRoute_(route, trusted, random),
      events_(events),
      ledger_(ledger),
      flight_(ledger, now),
      rate_(now),
      mtu_(datagramLimit(route, options.maxOuterMtu), datagramLimit(route, options.outerMtu)),
      gate_(makeController(options.controller,
                           {datagramLimit(route, options.maxOuterMtu), options.initialWindow, options.amp},
                           &group),
            flight_, mtu_, rtt_),
      lastSentAt_(now),
      options_(options) {
  peerRoute_.prove(rtt_.smoothed(), now);
}

Duration Subflow::pto() const {
  return rtt_.smoothed() + std::max<Duration>(4 * rtt_.variation(), LossDetector::kGranularity) +
         kMaxAckDelay;
}

void Subflow::enter(SubflowState next, Time now) {
  state_ = next;
  gate_.setUsable(usable(), now);
  if (usable()) {
    mtu_.onPathUp(now);
    flight_.onProgress(now);
  } else {
    moveAllData(now);
  }
  tell(SubflowEvent::Kind::kState);
}

bool Subflow::isUnproven() const {
  const auto* closed = std::get_if<state::Closed>(&state_);
  return state() == State::kValidating || (closed && closed->reopened);
}

// ---- what arrives

void Subflow::onPacket(uint64_t pn, bool eliciting, Ecn ecn, size_t bytes, const Route& from, Time now) {
  bool newest = pn >= acks_.expected();
  replay_.commit(pn);
  acks_.onPacket(pn, eliciting, ecn, rtt_.smoothed(), now);
  ++received_.receivedPackets;
  received_.receivedBytes += bytes;
  peerRoute_.onPacket(from, bytes, newest, isUnproven(), pto(), now);
  auto* suspect = std::get_if<state::Suspect>(&state_);
  if (suspect && now + pto() < suspect->probeAt && !pingDue_) suspect->probeAt = now;
}

void Subflow::onPathChallenge(const PathToken& token, const Route& from) {
  if (state() != State::kClosed || isUnproven()) peerRoute_.onChallenge(token, from);
}

void Subflow::onPathResponse(const PathToken& token, Time now) {
  std::optional<PeerRoute::Proof> proof = peerRoute_.onResponse(token, now);
  if (!proof) return;
  bool moved = proof->route != route();
  changeRoute(proof->route, now);
  if (proof->rtt && !rtt_.hasSample()) rtt_.onSample(*proof->rtt, {}, now);
  if (state() == State::kValidating || state() == State::kClosed) enter(state::Active{}, now);
  if (moved) {
    tell(SubflowEvent::Kind::kAddress);
    if (auto* suspect = std::get_if<state::Suspect>(&state_)) suspect->probeAt = now;
  }
}

void Subflow::changeRoute(const Route& next, Time now) {
  if (next == route()) return;
  // What went to the old route has most likely not arrived, which is no sign of congestion on the new one.
  flight_.loseAll(now, [&](uint64_t pn, const SentPacket& p) {
    if (p.hasControl) tell(SubflowEvent::Kind::kControlLost, pn);
    if (p.mtuProbe) mtu_.onProbeLost(p.bytes, now);
  });
  ecn_.onNewPath(sent().next());
  bool samePath = next.remote.address == route().remote.address;
  peerRoute_.use(next);
  if (samePath) return;  // RFC 9000 section 9.4: a new port alone is the same path
  gate_.reset(now);
  rtt_.reset();
  lossEstimate_ = {};
  mtu_.restart();
}

void Subflow::onPeerStatus(const SubflowStatusFrame& status, Time now) {
  if (status.sequence < peerSaid_.statusSequence) return;
  peerSaid_.statusSequence = status.sequence + 1;
  peerSaid_.refuses = !status.available;
  if (peerSaid_.refuses && usable()) enter(state::Suspect(pto(), now), now);
  if (auto* suspect = std::get_if<state::Suspect>(&state_))
    suspect->probeAt = peerSaid_.refuses ? kNever : now;
}

bool Subflow::onPeerPreference(const SubflowPreferenceFrame& frame) {
  if (frame.sequence < peerSaid_.preferenceSequence) return false;
  peerSaid_.preferenceSequence = frame.sequence + 1;
  return std::exchange(preference_, frame.preference) != frame.preference;
}

void Subflow::onSendError(Time now) {
  if (usable()) enter(state::Suspect(pto(), now), now);
  if (auto* suspect = std::get_if<state::Suspect>(&state_)) suspect->probeAt = now + suspect->probeInterval;
}

void Subflow::close(Time now) {
  peerRoute_.close();
  pingDue_ = false;
  if (auto* closed = std::get_if<state::Closed>(&state_)) {
    closed->reopened = false;
  } else {
    enter(state::Closed{}, now);
  }
}

void Subflow::open(const Route& route, Time now) {
  changeRoute(route, now);
  auto* closed = std::get_if<state::Closed>(&state_);
  if (!closed) return;
  closed->reopened = true;
  peerRoute_.prove(pto(), now);
}

// ---- timers

Time Subflow::nextDeadline() const {
  Time next = kNever;
  for (Timer timer : kTimersOf<Timer>) {
    if (timer == Timer::kPath && !canNumber()) break;  // nothing can leave before an ACK has come
    next = std::min(next, deadline(timer));
  }
  return next;
}

void Subflow::onTimer(Time now) {
  for (Timer timer : kTimersOf<Timer>) {
    if (deadline(timer) <= now) onExpired(timer, now);
  }
}

Time Subflow::deadline(Timer timer) const {
  switch (timer) {
    case Timer::kLoss:
      return flight_.lossTime();
    case Timer::kPto:
      return ptoDeadline();
    case Timer::kSuppression:
      return suppressionDeadline();
    case Timer::kProbe: {
      const auto* suspect = std::get_if<state::Suspect>(&state_);
      return suspect ? suspect->probeAt : kNever;
    }
    case Timer::kMtu:
      return mtu_.nextDeadline();
    case Timer::kPath:
      return peerRoute_.nextDeadline();
    case Timer::kAck:
      return state() == State::kClosed ? kNever : acks_.deadline();
    case Timer::kUrgent:
      return pingDue_ || peerRoute_.owesResponse() ? Time::min() : kNever;
    case Timer::kCount:
      break;
  }
  return kNever;
}

void Subflow::onExpired(Timer timer, Time now) {
  switch (timer) {
    case Timer::kLoss:
      detectLosses(now);
      return flight_.trim(3 * pto(), now);
    case Timer::kPto:
      return onPto(now);
    case Timer::kSuppression:
      movedSuppressed_ = gate_.suppressedAt();
      return moveAllData(now);
    case Timer::kProbe:
      return probe(now);
    case Timer::kMtu:
      return mtu_.onTimer(now);
    case Timer::kPath:
      return peerRoute_.onTimer(isUnproven(), pto(), now);
    case Timer::kAck:
    case Timer::kUrgent:
    case Timer::kCount:
      return;  // sent when the session polls
  }
}

// RFC 9002 section 6.2 starts the timer at the last sending; a tunnel that sends all the time would then
// notice silence only when its window is full. Here it starts at the oldest packet that should have been
// acknowledged, and waits out jitter.
Time Subflow::ptoDeadline() const {
  const auto* active = std::get_if<state::Active>(&state_);
  const SentPacket* oldest = flight_.oldestPacket();
  if (!active || !oldest) return kNever;
  Duration timeout = std::max(pto(), rtt_.smoothed() + options_.minRto);
  if (active->ptos > 0) return active->lastPtoAt + timeout * (1 << std::min(active->ptos - 1, 10));
  Duration quiet = std::max<Duration>(4 * rtt_.variation(), kQuiet) + kMaxAckDelay;
  return std::max(oldest->sentAt + timeout, flight_.progressAt() + quiet);
}

void Subflow::onPto(Time now) {
  auto& active = std::get<state::Active>(state_);
  if (++active.ptos == 1) ecn_.onSilence(sent().next());
  active.lastPtoAt = now;
  pingDue_ = true;
  uint64_t oldest = flight_.oldest();
  counts_.timeouts += isDataMissing(oldest);
  if (active.ptos >= state::Active::kSuspectPtos) return enter(state::Suspect(pto(), now), now);
  flight_.moveData(flight_.packet(oldest), now);
}

void Subflow::probe(Time now) {
  pingDue_ = true;
  // A path silent for long still takes a packet number for each probe.
  flight_.abandonOld(now, [&](uint64_t pn, const SentPacket& p) {
    if (p.ect) ecn_.onLost(pn, now);
  });
  std::get<state::Suspect>(state_).onProbe(now);
}

void Subflow::moveAllData(Time now) {
  flight_.moveAll(now, [&](uint64_t pn, const SentPacket& p) {
    if (p.hasControl) tell(SubflowEvent::Kind::kControlLost, pn);
  });
}

// A subflow that has been suppressed sends nothing that would show its losses: what should be acknowledged by
// now goes elsewhere.
Time Subflow::suppressionDeadline() const {
  Time since = gate_.suppressedAt();
  if (!usable() || since == kNever || since == movedSuppressed_ || flight_.bytes() == 0) return kNever;
  return since + rtt_.smoothed() + 4 * rtt_.variation();
}

// ---- what leaves

bool Subflow::hasPathFrame(Time now) const {
  return canNumber() && peerRoute_.hasFrame(now);
}

std::optional<Subflow::PathFrame> Subflow::takePathFrame(Time now) {
  std::optional<PathFrame> frame = peerRoute_.takeFrame(now);
  if (frame && frame->ect) ecn_.onProbeSent();
  return frame;
}

size_t Subflow::mtuProbe() const {
  return usable() ? mtu_.pollProbe() : 0;
}

Duration Subflow::expectedDelay() const {
  auto rtt = static_cast<double>(rtt_.smoothed().count());
  return Duration(static_cast<Duration::rep>(rtt * (0.5 + 2 * lossEstimate_.recentRate())));
}

PathView Subflow::view(Time now, bool overflow) const {
  PathView v = gate_.view(now, overflow);
  v.sent = counts_.sentBytes;
  v.weight = preference_.weight;
  v.uplink = preference_.uplink ? preference_.uplink : static_cast<uint16_t>(UINT8_MAX + 1 + id_);
  return v;
}

SentPacket& Subflow::onSent(size_t bytes, bool tracked, Time now) {
  bool isFirst = flight_.bytes() == 0;
  SentPacket& p = flight_.push(bytes, tracked, now);
  ++counts_.sentPackets;
  counts_.sentBytes += bytes;
  lastSentAt_ = now;
  gate_.onSent(bytes, outerHeaders(route()), tracked, now);
  if (!tracked) return p;
  rate_.onSent(p, isFirst, now);
  pingDue_ = false;
  lossEstimate_.onSent();
  return p;
}

// A silent path may drop what is marked: what shall bring it back is not.
Ecn Subflow::codepoint(uint64_t pn, SentPacket& p, Time now) {
  const auto* active = std::get_if<state::Active>(&state_);
  bool silent = active ? active->ptos > 0 : state() == State::kSuspect;
  p.ect = p.state == SentPacket::State::kInFlight && !p.mtuProbe && !silent && ecn_.onSent(pn, pto(), now);
  return p.ect ? Ecn::kEct0 : Ecn::kNotEct;
}

const char* Subflow::stateName(Time now) const {
  switch (state()) {
    case State::kValidating:
      return "validating";
    case State::kActive:
      return "active";
    case State::kSuspect:
      return std::get<state::Suspect>(state_).hasFailed(now) ? "failed" : "suspect";
    case State::kClosed:
      return "closed";
  }
  return "";
}

SubflowStatus Subflow::status(Time now) const {
  SubflowStatus s;
  static_cast<SendCounts&>(s) = counts_;
  static_cast<ReceiveCounts&>(s) = received_;
  static_cast<ProtectionCounts&>(s) = tally_.counts();
  s.id = id_;
  s.uplink = uplink_;
  s.local = route().local.toString();
  s.remote = route().remote.toString();
  s.state = stateName(now);
  s.srtt = rtt_.smoothed();
  s.rttvar = rtt_.variation();
  s.minRtt = rtt_.windowedMin();
  if (rtt_.hasSample()) s.queueDelay = std::max(Duration{}, rtt_.smoothed() - rtt_.windowedMin());
  s.window = gate_.window();
  s.inFlight = flight_.bytes();
  s.pacingRate = gate_.rate();
  s.deliveryRate = rate_.latest();
  s.preference = preference_;
  s.resting = duty() == PathDuty::kNone;
  s.suppressed = gate_.suppressedAt() != kNever;
  s.ceMarks = ecn_.ceCount();
  s.ecn = ecn_.name();
  s.mtu = mtu_.current() + outerHeaders(route());
  RecoveryPath path;
  path.sent = lossEstimate_.sent();
  path.lost = lossEstimate_.lost();
  path.sinceLoss = lossEstimate_.sinceLoss();
  s.lossRate = lossMetric(path, options_.recoveryOptions.alpha1, options_.recoveryOptions.beta1);
  s.lossMetric = lossMetric(path, options_.recoveryOptions.alpha, options_.recoveryOptions.beta);
  s.burst = lossEstimate_.burst();
  return s;
}

}  // namespace braid
