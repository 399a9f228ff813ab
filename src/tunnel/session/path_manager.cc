#include "tunnel/session/path_manager.h"

#include <algorithm>
#include <utility>

namespace braid {

PathManager::PathManager(Side side, const SessionOptions& options, ControlFrames& controls,
                         DataTracker& dataTracker, PeerEvents& peerEvents,
                         const RecoveryTrace& trace, SecretRandom& random, Time now)
    : side_(side),
      options_(options),
      controls_(controls),
      dataTracker_(dataTracker),
      peerEvents_(peerEvents),
      trace_(trace),
      random_(random),
      roles_(side, options.maxOuterMtu, subflows_, controls, peerEvents),
      unusableSince_(now),
      innerMtu_(MtuDiscovery::kBaseDatagram - kDatagramOverhead) {}

// ---- add and close

bool PathManager::open(const std::string& name, const std::string& uplink, const Route& route,
                       Time now) {
  if (std::optional<size_t> position = subflows_.named(name)) {
    Subflow& s = subflows_[*position];
    if (s.state() == Subflow::State::kClosed || !hasSameEnds(s.asked(), route)) {
      s.open(route, now);
      settle(now);
      controls_.announce(SubflowStatusFrame{s.id(), controls_.takeSequence(), true});
    }
    return true;
  }
  if (subflows_.size() >= std::min(options_.maxSubflows, SubflowSet::kMost)) return false;
  add(SubflowId(static_cast<uint8_t>(subflows_.size())), name, uplink, route, now);
  return true;
}

void PathManager::close(const std::string& name, Time now) {
  std::optional<size_t> position = subflows_.named(name);
  if (!position) return;
  Subflow& s = subflows_[*position];
  if (s.state() == Subflow::State::kClosed && !s.isUnproven()) return;
  s.close(now);
  settle(now);
  controls_.announce(SubflowStatusFrame{s.id(), controls_.takeSequence(), false});
}

void PathManager::setPreference(const std::string& name, const PathPreference& own,
                                const PathPreference& peers, std::shared_ptr<Pacer> ceiling) {
  if (std::optional<size_t> position = subflows_.named(name))
    roles_.setPreference(subflows_[*position], own, peers, std::move(ceiling));
}

Subflow* PathManager::accept(SubflowId id, const Route& from, Time now) {
  if (side_ == Side::kInitiator || subflows_.size() >= options_.maxSubflows) return nullptr;
  return &add(id, "", "", from, now);
}

Subflow& PathManager::add(SubflowId id, const std::string& name, const std::string& uplink,
                          const Route& route, Time now) {
  bool trusted = side_ == Side::kInitiator;  // the address comes from our own configuration
  Subflow& added =
      subflows_.add(std::make_unique<Subflow>(id, uplink, route, trusted, options_, events_,
                                              dataTracker_, controllers_, random_, now),
                    name);
  added.sender().mtu().setLimit(largestDatagram_);
  if (tellsTimes_) added.receiver().acks().tellTimes();
  return added;
}

void PathManager::setLargestDatagram(size_t size) {
  largestDatagram_ = size;
  for (Subflow* s : subflows_) s->sender().mtu().setLimit(size);
}

void PathManager::tellTimes() {
  tellsTimes_ = true;
  for (Subflow* s : subflows_) s->receiver().acks().tellTimes();
}

// ---- what subflows tell

void PathManager::settle(Time now) {
  SubflowEvent event;
  while (events_.poll(event)) onEvent(event, now);
}

void PathManager::onEvent(const SubflowEvent& event, Time now) {
  const Subflow& s = subflows_.at(event.subflow);
  switch (event.kind) {
    case SubflowEvent::Kind::kState:
      return onStateChange(s);
    case SubflowEvent::Kind::kAddress:
      return peerEvents_.tell(Event::Kind::kAddressChanged,
                              "subflow " + std::to_string(s.id().value()) + " is now at " +
                                  s.route().remote.toString());
    case SubflowEvent::Kind::kControlDelivered:
      return controls_.onFate(event.subflow, event.packetNumber, true);
    case SubflowEvent::Kind::kControlLost:
      return controls_.onFate(event.subflow, event.packetNumber, false);
    case SubflowEvent::Kind::kPacketLost:
      return trace_.note({.kind = TraceEvent::Kind::kPacketLost,
                          .time = now,
                          .subflow = event.subflow,
                          .pn = event.packetNumber,
                          .lossRate = event.lossRate});
  }
}

void PathManager::onStateChange(const Subflow& s) {
  roles_.onChange();
  switch (s.state()) {
    case Subflow::State::kValidating:
      break;
    case Subflow::State::kActive: {
      bool normal = s.preference().use == PathUse::kNormal;
      if (!s.life().isAfterBlip())
        peerEvents_.tell(Event::Kind::kSubflowUp, s, normal ? "is in use" : "is usable");
      roles_.onUsable(s);
      break;
    }
    case Subflow::State::kSuspect:
      break;  // tellSilence(), if it lasts
    case Subflow::State::kClosed:
      peerEvents_.tell(Event::Kind::kSubflowFailed, s, "lost its uplink");
      break;
  }
}

void PathManager::tellSilence(Subflow& s, Time now) {
  if (s.life().tellAt() > now) return;
  s.setTold();
  peerEvents_.tell(Event::Kind::kSubflowSuspect, s, "is silent, its packets are moved",
                   s.life().down(now));
}

// ---- what else happens

bool PathManager::onSendError(const Route& route, Time now) {
  bool ours = false;
  for (Subflow* s : subflows_) {
    if (s->route() != route) continue;
    s->onSendError(now);
    ours = true;
  }
  settle(now);
  return ours;
}

void PathManager::onPing(Subflow& subflow, Time now) {
  subflow.onPing(keepalive_ / 2, now);
}

bool PathManager::onTooBig(const Route& route, size_t size, Time now) {
  bool ours = false;
  for (Subflow* s : subflows_) {
    if (s->route() != route) continue;
    s->sender().mtu().onTooBig(size, now);
    ours = true;
  }
  return ours;
}

void PathManager::onTimer(Time now) {
  for (Subflow* s : subflows_) {
    s->onTimer(now);
    tellSilence(*s, now);
    if (keepalive_ > 0ns && s->usable() && s->askAt(keepalive_) <= now) s->ask(now);
  }
  settle(now);
  roles_.onTimer(now);
}

Time PathManager::nextDeadline(Time now) const {
  Time next = roles_.nextDeadline(now);
  for (const Subflow* s : subflows_) {
    next = std::min({next, s->nextDeadline(), s->life().tellAt()});
    // Its ACKs are sent on another path.
    if (s->ackRoom() == 0 && subflows_.fastest())
      next = std::min(next, s->receiver().acks().deadline());
    bool pings = keepalive_ > 0ns && s->usable() && s->sender().canNumber();
    if (pings) next = std::min(next, s->askAt(keepalive_));
  }
  return next;
}

namespace {
bool wasProven(const Subflow& s) {
  return s.state() == Subflow::State::kActive || s.state() == Subflow::State::kSuspect;
}
}  // namespace

void PathManager::ask() {
  for (Subflow* s : subflows_)
    if (wasProven(*s)) s->requestPing();
}

// ---- what follows

Duration PathManager::answerTime() const {
  Duration longest{};
  for (const Subflow* s : subflows_)
    if (wasProven(*s)) longest = std::max(longest, s->path().pto());
  return longest;
}

void PathManager::update(Time now) {
  roles_.update(now);
  if (anyUsable()) {
    unusableSince_ = kNever;
    updateInnerMtu();
  } else if (unusableSince_ == kNever) {
    unusableSince_ = now;
  }
}

// The inner MTU is what every path can carry. A path below IPv6's minimum MTU does not lower it,
// unless all paths are below: such a path carries small packets only. A path does not count during
// its MTU search, because it may turn out to carry more. A path with the role of overflow or none
// does not count either: a packet that fits no other path would have to wait for it.
void PathManager::updateInnerMtu() {
  size_t smallest = SIZE_MAX;
  size_t largest = 0;
  for (const Subflow* s : subflows_) {
    if (!s->usable() || s->admission().role() != PathRole::kAll || s->mtu().searching()) continue;
    smallest = std::min(smallest, s->mtu().current());
    largest = std::max(largest, s->mtu().current());
  }
  if (largest == 0) return;
  knowsInnerMtu_ = true;
  size_t mtu =
      std::max(smallest, std::min(largest, MtuDiscovery::kBaseDatagram)) - kDatagramOverhead;
  if (mtu == innerMtu_) return;
  innerMtu_ = mtu;
  peerEvents_.tell(Event::Kind::kInnerMtu, "inner MTU is now " + std::to_string(mtu));
}

void PathManager::fill(SessionStatus& status, Time now) const {
  status.innerMtu = innerMtu_;
  status.suppressions = controllers_.episodes();
  for (const Subflow* s : subflows_) status.subflows.push_back(s->status(now));
}

}  // namespace braid
