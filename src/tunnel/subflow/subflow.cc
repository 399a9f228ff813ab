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
                 const SubflowOptions& options, SubflowOwner& owner, DataLedger& ledger,
                 ControllerGroup& group, Random& random, Time now)
    : id_(id),
      uplink_(std::move(uplink)),
      peerRoute_(route, trusted, random),
      owner_(owner),
      ledger_(ledger),
      flight_(ledger, now),
      rate_(now),
      mtu_(datagramLimit(route, options.maxOuterMtu), datagramLimit(route, options.outerMtu)),
      gate_(makeController(options.controller,
                           {datagramLimit(route, options.maxOuterMtu), options.initialWindow, options.amp},
                           &group),
            flight_, mtu_, rtt_),
      lastSentAt_(now),
      suspectSince_(now),
      options_(options) {
  peerRoute_.prove(rtt_.smoothed(), now);
}

Duration Subflow::pto() const {
  return rtt_.smoothed() + std::max<Duration>(4 * rtt_.variation(), LossDetector::kGranularity) +
         kMaxAckDelay;
}

void Subflow::setState(State state, Time now) {
  if (state == state_) return;
  State before = state_;
  state_ = state;
  gate_.setUsable(usable(), now);
  if (state == State::kActive) {
    mtu_.onPathUp(now);
    ptoCount_ = 0;
    probeAt_ = kNever;
    flight_.onProgress(now);
    startAnew_ = before == State::kSuspect && now - suspectSince_ > kMaxProbeInterval;
  }
  if (state == State::kSuspect) {
    suspectSince_ = now;
    probeInterval_ = pto();
    probes_ = 0;
    probeAt_ = now;
    moveAllData(now);
  }
  if (state == State::kClosed) {
    suspectSince_ = now;
    probeAt_ = kNever;
    moveAllData(now);
  }
  owner_.onStateChange(*this);
}

// ---- what arrives

void Subflow::onPacket(uint64_t pn, bool eliciting, Ecn ecn, size_t bytes, const Route& from, Time now) {
  bool newest = pn >= acks_.expected();
  replay_.commit(pn);
  acks_.onPacket(pn, eliciting, ecn, rtt_.smoothed(), now);
  ++counts_.receivedPackets;
  counts_.receivedBytes += bytes;
  peerRoute_.onPacket(from, bytes, newest, isUnproven(), pto(), now);
  if (state_ == State::kSuspect && now + pto() < probeAt_ && pings_ == 0) probeAt_ = now;
}

void Subflow::onPathChallenge(const PathToken& token, const Route& from) {
  if (state_ != State::kClosed || reopened_) peerRoute_.onChallenge(token, from);
}

void Subflow::onPathResponse(const PathToken& token, Time now) {
  std::optional<PeerRoute::Proof> proof = peerRoute_.onResponse(token, now);
  if (!proof) return;
  bool moved = proof->route != route();
  changeRoute(proof->route, now);
  if (proof->rtt && !rtt_.hasSample()) rtt_.onSample(*proof->rtt, {}, now);
  if (state_ == State::kValidating || state_ == State::kClosed) setState(State::kActive, now);
  if (moved) {
    owner_.onAddressChange(*this);
    if (state_ == State::kSuspect) probeAt_ = now;
  }
}

void Subflow::changeRoute(const Route& next, Time now) {
  if (next == route()) return;
  // What went to the old route has most likely not arrived, which is no sign of congestion on the new one.
  flight_.loseAll(now, [&](uint64_t pn, const SentPacket& p) {
    if (p.hasControl) owner_.onControlFate(*this, pn, false);
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
  if (status.sequence < peerStatusSequence_) return;
  peerStatusSequence_ = status.sequence + 1;
  peerRefuses_ = !status.available;
  if (peerRefuses_ && usable()) setState(State::kSuspect, now);
  if (state_ == State::kSuspect) probeAt_ = peerRefuses_ ? kNever : now;
}

bool Subflow::onPeerPreference(const SubflowPreferenceFrame& frame) {
  if (frame.sequence < peerPreferenceSequence_) return false;
  peerPreferenceSequence_ = frame.sequence + 1;
  return std::exchange(preference_, frame.preference) != frame.preference;
}

void Subflow::onSendError(Time now) {
  if (state_ == State::kActive) setState(State::kSuspect, now);
  if (state_ == State::kSuspect) probeAt_ = now + probeInterval_;
}

void Subflow::close(Time now) {
  peerRoute_.close();
  pings_ = 0;
  reopened_ = false;
  setState(State::kClosed, now);
}

void Subflow::open(const Route& route, Time now) {
  changeRoute(route, now);
  if (state_ != State::kClosed) return;
  reopened_ = true;
  peerRoute_.prove(pto(), now);
}

// ---- timers

// RFC 9002 section 6.2 starts the timer at the last sending; a tunnel that sends all the time would then
// notice silence only when its window is full. Here it starts at the oldest packet that should have been
// acknowledged, and waits out jitter.
Time Subflow::ptoDeadline() const {
  if (state_ == State::kSuspect || state_ == State::kClosed) return kNever;
  const SentPacket* oldest = flight_.oldestPacket();
  if (!oldest) return kNever;
  Duration timeout = std::max(pto(), rtt_.smoothed() + options_.minRto);
  if (ptoCount_ > 0) return lastPtoAt_ + timeout * (1 << std::min(ptoCount_ - 1, 10));
  Duration quiet = std::max<Duration>(4 * rtt_.variation(), kQuiet) + kMaxAckDelay;
  return std::max(oldest->sentAt + timeout, flight_.progressAt() + quiet);
}

void Subflow::onPto(Time now) {
  if (++ptoCount_ == 1) ecn_.onSilence(sent().next());
  lastPtoAt_ = now;
  pings_ = 1;
  uint64_t oldest = flight_.oldest();
  counts_.timeouts += isDataMissing(oldest);
  if (ptoCount_ >= kSuspectPtos && state_ == State::kActive) return setState(State::kSuspect, now);
  flight_.moveData(flight_.packet(oldest), now);
}

void Subflow::moveAllData(Time now) {
  flight_.moveAll(now, [&](uint64_t pn, const SentPacket& p) {
    if (p.hasControl) owner_.onControlFate(*this, pn, false);
  });
}

// A subflow that has been suppressed sends nothing that would show its losses: what should be acknowledged by
// now goes elsewhere.
Time Subflow::moveSuppressedAt() const {
  Time since = gate_.suppressedAt();
  if (!usable() || since == kNever || since == movedSuppressed_ || flight_.bytes() == 0) return kNever;
  return since + rtt_.smoothed() + 4 * rtt_.variation();
}

void Subflow::onTimer(Time now) {
  if (flight_.lossTime() <= now) {
    detectLosses(now);
    flight_.trim(3 * pto(), now);
  }
  if (ptoDeadline() <= now) onPto(now);
  if (moveSuppressedAt() <= now) {
    movedSuppressed_ = gate_.suppressedAt();
    moveAllData(now);
  }
  if (state_ == State::kSuspect && probeAt_ <= now) {
    pings_ = 1;
    // A path silent for long still takes a packet number for each probe.
    flight_.abandonOld(now, [&](uint64_t pn, const SentPacket& p) {
      if (p.ect) ecn_.onLost(pn, now);
    });
    probeAt_ = now + probeInterval_;
    if (++probes_ >= kQuickProbes) probeInterval_ = std::min<Duration>(probeInterval_ * 2, kMaxProbeInterval);
  }
  mtu_.onTimer(now);
  peerRoute_.onTimer(isUnproven(), pto(), now);
}

Time Subflow::nextDeadline() const {
  Time next = std::min({flight_.lossTime(), ptoDeadline(), moveSuppressedAt(), mtu_.nextDeadline()});
  if (state_ == State::kSuspect) next = std::min(next, probeAt_);
  if (!canNumber()) return next;  // nothing can leave before an ACK has come
  if (state_ != State::kClosed) next = std::min(next, acks_.deadline());
  next = std::min(next, peerRoute_.nextDeadline());
  if (pings_ > 0 || peerRoute_.owesResponse()) next = Time::min();
  return next;
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
  pings_ = 0;
  lossEstimate_.onSent();
  return p;
}

// A silent path may drop what is marked: what shall bring it back is not.
Ecn Subflow::codepoint(uint64_t pn, SentPacket& p, Time now) {
  bool silent = ptoCount_ > 0 || state_ == State::kSuspect;
  p.ect = p.state == SentPacket::State::kInFlight && !p.mtuProbe && !silent && ecn_.onSent(pn, pto(), now);
  return p.ect ? Ecn::kEct0 : Ecn::kNotEct;
}

SubflowStatus Subflow::status(Time now) const {
  SubflowStatus s;
  s.id = id_;
  s.uplink = uplink_;
  s.local = route().local.toString();
  s.remote = route().remote.toString();
  switch (state_) {
    case State::kValidating:
      s.state = "validating";
      break;
    case State::kActive:
      s.state = "active";
      break;
    case State::kSuspect:
      s.state = now - suspectSince_ > kFailedAfter ? "failed" : "suspect";
      break;
    case State::kClosed:
      s.state = "closed";
      break;
  }
  s.srtt = rtt_.smoothed();
  s.rttvar = rtt_.variation();
  s.minRtt = rtt_.windowedMin();
  if (rtt_.hasSample()) s.queueDelay = std::max(Duration{}, rtt_.smoothed() - rtt_.windowedMin());
  s.window = gate_.window();
  s.inFlight = flight_.bytes();
  s.pacingRate = gate_.rate();
  s.deliveryRate = rate_.latest();
  s.sentPackets = counts_.sentPackets;
  s.sentBytes = counts_.sentBytes;
  s.receivedPackets = counts_.receivedPackets;
  s.receivedBytes = counts_.receivedBytes;
  s.lostPackets = counts_.lostPackets;
  s.spuriousLosses = counts_.spurious;
  s.timeouts = counts_.timeouts;
  s.retransmittedBytes = counts_.repairedBytes;
  s.preference = preference_;
  s.resting = duty() == PathDuty::kNone;
  s.suppressed = gate_.suppressedAt() != kNever;
  s.ceMarks = ecn_.ceCount();
  s.ecn = ecn_.name();
  s.mtu = mtu_.current() + outerHeaders(route());
  fillProtection(s);
  return s;
}

}  // namespace braid
