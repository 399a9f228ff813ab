#include "tunnel/subflow/subflow.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace braid {

Subflow::Subflow(SubflowId id, std::string uplink, const Route& route, bool trusted,
                 const SubflowOptions& options, SubflowEvents& events, DataTracker& dataTracker,
                 ControllerGroup& group, SecretRandom& random, Time now)
    : id_(id),
      uplink_(std::move(uplink)),
      options_(options),
      asked_(route),
      eventSink_(id, events),
      peerRoute_(route, trusted, random),
      sender_(eventSink_, route, options, dataTracker, group, random, now) {
  peerRoute_.prove(path().rtt().smoothed(), now);
}

void Subflow::onNewState(Time now) {
  sender_.setUsable(usable(), now);
  eventSink_.tell(SubflowEvent::Kind::kState);
}

// ---- what arrives

void Subflow::onPacket(PacketNumber pn, bool eliciting, Ecn ecn, size_t bytes, const Route& from,
                       Time now) {
  bool isNewest = receiver_.onPacket(pn, eliciting, ecn, bytes, path().rtt().smoothed(), now);
  peerRoute_.onPacket(from, bytes, isNewest, stateMachine_.isUnproven(), path().pto(), now);
  bool wasStale = stateMachine_.isStale(now);
  if (!stateMachine_.onPacket(path().pto(), now)) return;
  onNewState(now);
  if (wasStale) admission().reset(now);
}

bool Subflow::onAck(const AckFrame& ack, bool samePath, Time now) {
  if (sender_.isForged(ack)) return false;
  if (std::optional<AckNews> news = sender_.onAck(ack, samePath, now)) learn(*news, samePath, now);
  return true;
}

void Subflow::learn(const AckNews& news, bool samePath, Time now) {
  bool wasStale = stateMachine_.isStale(now);
  stateMachine_.onLate(news.oldestSentAt, now);
  bool isBack = stateMachine_.onAck(news.largestSentAt, samePath);
  if (isBack) onNewState(now);
  sender_.learn(news, isBack && wasStale, now);
}

void Subflow::onPathChallenge(const PathToken& token, const Route& from) {
  if (state() != State::kClosed || stateMachine_.isUnproven()) peerRoute_.onChallenge(token, from);
}

bool Subflow::onPathResponse(const PathToken& token, const Route& from, Time now) {
  bool isStray = peerRoute_.isStray(token, from);
  if (std::optional<PeerRoute::Proof> proof = peerRoute_.onResponse(token, from, now))
    onProof(*proof, now);
  return !isStray;
}

void Subflow::onProof(const PeerRoute::Proof& proof, Time now) {
  bool moved = proof.route != route();
  changeRoute(proof.route, now);
  sender_.onProof(proof.rtt, now);
  if (stateMachine_.onProven()) onNewState(now);
  if (!moved) return;
  eventSink_.tell(SubflowEvent::Kind::kAddress);
  stateMachine_.onNewRoute(now);
}

void Subflow::changeRoute(const Route& next, Time now) {
  if (next == route()) return;
  // RFC 9000 section 9.4: a new port alone is the same path.
  sender_.onNewRoute(next.remote.address == route().remote.address, now);
  peerRoute_.use(next);
  stateMachine_.forgetPtos();
}

void Subflow::onPeerStatus(const SubflowStatusFrame& status, Time now) {
  if (!statusWord_.isNews(status.sequence)) return;
  if (stateMachine_.onPeerStatus(!status.available, path().pto(), now)) onNewState(now);
}

bool Subflow::onPeerPreference(const SubflowPreferenceFrame& frame) {
  if (!preferenceWord_.isNews(frame.sequence)) return false;
  return std::exchange(preference_, frame.preference) != frame.preference;
}

// ---- what happens on this side

void Subflow::onSendError(Time now) {
  if (stateMachine_.onSendError(path().pto(), now)) onNewState(now);
}

void Subflow::close(Time now) {
  peerRoute_.close();
  if (stateMachine_.close(now)) onNewState(now);
}

void Subflow::open(const Route& route, Time now) {
  asked_ = route;
  observed_ = {};
  changeRoute(route, now);
  if (!stateMachine_.reopen()) stateMachine_.onNewRoute(now);
  peerRoute_.prove(path().pto(), now);
}

// ---- time

Time Subflow::deadline(Timer timer) const {
  switch (timer) {
    case Timer::kLoss:
      return sender_.flight().lossTime();
    case Timer::kPto: {
      Duration timeout = std::max(path().pto(), path().rtt().smoothed() + options_.minRto);
      return stateMachine_.ptoDeadline(sender_.flight(), path(), timeout);
    }
    case Timer::kSuppression:
      return sender_.suppressionDeadline();
    case Timer::kProbe:
      return stateMachine_.probeAt();
    case Timer::kMtu:
      return mtu().nextDeadline();
    case Timer::kPath:
      return peerRoute_.nextDeadline();
    case Timer::kAck:
      return ackRoom() == 0 ? kNever : receiver_.acks().deadline();
    case Timer::kUrgent:
      return stateMachine_.owesPing() || peerRoute_.owesResponse() ? Time::min() : kNever;
    case Timer::kCount:
      break;
  }
  return kNever;
}

Time Subflow::nextDeadline() const {
  Time next = kNever;
#pragma GCC unroll 16  // runs for each packet: lets the compiler resolve deadline()'s switch
  for (Timer timer : kTimersOf<Timer>) {
    if (timer == Timer::kPath && !sender_.canNumber())
      break;  // no number is free: nothing can be sent before an ACK comes
    next = std::min(next, deadline(timer));
  }
  return next;
}

void Subflow::onTimer(Time now) {
#pragma GCC unroll 16
  for (Timer timer : kTimersOf<Timer>) {
    if (deadline(timer) <= now) onExpired(timer, now);
  }
}

void Subflow::onExpired(Timer timer, Time now) {
  switch (timer) {
    case Timer::kLoss:
      return sender_.onLossTimer(now);
    case Timer::kPto:
      return onPto(now);
    case Timer::kSuppression:
      return sender_.onSuppressionTimer(now);
    case Timer::kProbe:
      sender_.onProbe(now);
      return stateMachine_.onProbe(now);
    case Timer::kMtu:
      return sender_.mtu().onTimer(now);
    case Timer::kPath:
      return peerRoute_.onTimer(stateMachine_.isUnproven(), path().pto(), now);
    case Timer::kAck:
    case Timer::kUrgent:
    case Timer::kCount:
      return;  // sent when the session polls
  }
}

void Subflow::onPto(Time now) {
  const InFlightTracker& flight = sender_.flight();
  bool isWaiting = flight.oldestPacket() != nullptr;
  if (isWaiting) sender_.onPto(!stateMachine_.isSilent(), now);
  if (stateMachine_.onPto(path().pto(), isWaiting ? flight.progressAt() : kNever, now))
    onNewState(now);
}

// ---- what leaves

bool Subflow::mustSend() const {
  return stateMachine_.owesPing() && state() != State::kClosed && sender_.canNumber();
}

std::optional<Subflow::PathFrame> Subflow::takePathFrame(Time now) {
  if (!hasPathFrame(now)) return std::nullopt;
  if (stateMachine_.isUnproven()) sender_.onProbe(now);
  std::optional<PathFrame> frame = peerRoute_.takeFrame(now);
  if (frame && frame->ect) sender_.onMarkedChallenge();
  return frame;
}

size_t Subflow::ackRoom() const {
  if (state() == State::kClosed) return 0;
  size_t room = mtu().current();
  if (stateMachine_.isUnproven())
    room = static_cast<size_t>(std::min<uint64_t>(room, peerRoute_.unprovenRoom()));
  return room < kLeastAckDatagram ? 0 : room;
}

SentPacket& Subflow::onSent(size_t bytes, bool tracked, Time now) {
  if (tracked) stateMachine_.onSent(now);
  return sender_.onSent(bytes, outerHeaders(route()), tracked, now);
}

Ecn Subflow::codepoint(PacketNumber pn, SentPacket& packet, Time now) {
  return sender_.codepoint(pn, packet, stateMachine_.isSilent(), now);
}

PathView Subflow::view(Time now, bool overflow) const {
  PathView v = sender_.view(now, overflow);
  v.weight = preference_.weight;
  v.uplink = uplinkNumber();
  return v;
}

// ---- for the operator

SubflowStatus Subflow::status(Time now) const {
  SubflowStatus s;
  s.id = id_.value();
  s.uplink = uplink_;
  s.path = pathName();
  s.local = route().local.toString();
  s.remote = route().remote.toString();
  if (observed_.address.family != Address::Family::kNone) s.observed = observed_.toString();
  s.route = route();
  s.proven = !stateMachine_.isUnproven();
  s.state = stateMachine_.name(now);
  s.deadWay = stateMachine_.deadWay(now);
  s.down = stateMachine_.down(now);
  s.preference = preference_;
  s.mtu = mtu().current() + outerHeaders(route());
  sender_.fill(s, options_.recoveryOptions);
  s.blips = stateMachine_.blips();
  static_cast<ReceiveCounts&>(s) = receiver_.counts();
  return s;
}

std::optional<size_t> SubflowSet::named(const std::string& name) const {
  auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end()) return std::nullopt;
  return static_cast<size_t>(at - names_.begin());
}

Subflow& SubflowSet::add(std::unique_ptr<Subflow> subflow, std::string name) {
  Subflow& s = *subflow;
  uint8_t id = s.id().value();
  if (table_.size() <= id) table_.resize(id + size_t{1});
  assert(!table_[id].subflow);
  table_[id] = {std::move(subflow), static_cast<uint8_t>(order_.size())};
  order_.push_back(&s);
  names_.push_back(std::move(name));
  return s;
}

void SubflowSet::clear() {
  order_.clear();
  names_.clear();
  for (Numbered& numbered : table_) numbered.subflow.reset();
}

bool SubflowSet::anyUsable() const {
  return std::any_of(begin(), end(), [](const Subflow* s) { return s->usable(); });
}

Subflow* SubflowSet::fastest() const {
  Subflow* best = nullptr;
  for (Subflow* s : order_) {
    if (!s->admission().takesData()) continue;
    if (!best || s->path().rtt().smoothed() < best->path().rtt().smoothed()) best = s;
  }
  return best;
}

}  // namespace braid
