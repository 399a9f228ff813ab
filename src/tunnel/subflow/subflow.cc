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
      route_(route),
      trusted_(trusted),
      owner_(owner),
      ledger_(ledger),
      random_(random),
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
  validator_.start(route, trusted_, rtt_.smoothed(), random_, now);
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
  validator_.learnLocal(from);
  if (route_.local.family == Address::Family::kNone && from.socket == route_.socket &&
      from.remote == route_.remote) {
    route_.local = from.local;  // until now the kernel chose it
  }
  if (newest && from != route_) {
    // RFC 9000 section 9.3: the peer may have a new address. It gets data when it has answered there.
    validator_.start(from, false, pto(), random_, now);
  } else if (newest && validator_.running() && !(*validator_.route() == route_)) {
    validator_.cancel();
    if (isUnproven()) validator_.start(route_, trusted_, pto(), random_, now);
  }
  validator_.onReceived(from, bytes);
  if (state_ == State::kSuspect && now + pto() < probeAt_ && pings_ == 0) probeAt_ = now;
}

void Subflow::onPathChallenge(const PathToken& token, const Route& from) {
  if (state_ != State::kClosed || reopened_) response_ = Response{from, token};
}

void Subflow::onPathResponse(const PathToken& token, Time now) {
  std::optional<Route> candidate = validator_.route();
  std::optional<Duration> sample = validator_.rtt(now);
  if (!validator_.onResponse(token)) return;
  bool moved = *candidate != route_;
  if (moved) changeRoute(*candidate, candidate->remote.address != route_.remote.address, now);
  if (sample && !rtt_.hasSample()) rtt_.onSample(*sample, {}, now);
  if (state_ == State::kValidating || state_ == State::kClosed) setState(State::kActive, now);
  if (moved) {
    owner_.onAddressChange(*this);
    if (state_ == State::kSuspect) probeAt_ = now;
  }
}

void Subflow::changeRoute(const Route& route, bool newAddress, Time now) {
  if (route != route_) {
    // What went to the old route has most likely not arrived, which is no sign of congestion on the new one.
    flight_.loseAll(now, [&](uint64_t pn, const SentPacket& p) {
      if (p.hasControl) owner_.onControlFate(*this, pn, false);
      if (p.mtuProbe) mtu_.onProbeLost(p.bytes, now);
    });
    ecn_.onNewPath(sent().next());
  }
  route_ = route;
  if (!newAddress) return;  // RFC 9000 section 9.4: a new port alone is the same path
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
  validator_.cancel();
  response_.reset();
  pings_ = 0;
  reopened_ = false;
  setState(State::kClosed, now);
}

void Subflow::open(const Route& route, Time now) {
  changeRoute(route, route.remote.address != route_.remote.address, now);
  if (state_ != State::kClosed) return;
  reopened_ = true;
  validator_.start(route, trusted_, pto(), random_, now);
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
  if (validator_.onTimer(now) && isUnproven()) {
    validator_.start(route_, trusted_, pto(), random_, now);
  }
}

Time Subflow::nextDeadline() const {
  Time next = std::min({flight_.lossTime(), ptoDeadline(), moveSuppressedAt(), mtu_.nextDeadline()});
  if (state_ == State::kSuspect) next = std::min(next, probeAt_);
  if (!canNumber()) return next;  // nothing can leave before an ACK has come
  if (state_ != State::kClosed) next = std::min(next, acks_.deadline());
  if (validator_.running()) next = std::min(next, validator_.nextDeadline());
  if (pings_ > 0 || response_) next = Time::min();
  return next;
}

// ---- what leaves

bool Subflow::hasPathFrame(Time now) const {
  return canNumber() && (response_ || validator_.allowance(MtuDiscovery::kMinDatagram, now) > 0);
}

std::optional<Subflow::PathFrame> Subflow::takePathFrame(Time now) {
  if (response_) {
    PathFrame frame{response_->route, std::nullopt, PathResponseFrame{response_->token}, 0, false};
    response_.reset();
    return frame;
  }
  size_t size = validator_.allowance(MtuDiscovery::kMinDatagram, now);
  if (size == 0) return std::nullopt;
  // Only one, for the path may drop it.
  bool ect = validator_.isFirst();
  if (ect) ecn_.onProbeSent();
  return PathFrame{*validator_.route(), validator_.challenge(size, now), std::nullopt, size, ect};
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
  gate_.onSent(bytes, outerHeaders(route_), tracked, now);
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
  s.local = route_.local.toString();
  s.remote = route_.remote.toString();
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
  s.mtu = mtu_.current() + outerHeaders(route_);
  fillProtection(s);
  return s;
}

}  // namespace braid
