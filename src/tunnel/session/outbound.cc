#include "tunnel/session/outbound.h"

#include <algorithm>
#include <span>
#include <utility>

namespace braid {

namespace {
/// A frame without meaning, so that every peer is tested to skip unknown frames (GREASE, RFC 8701).
/// The token, which is random, chooses its type and length.
OptionalFrame noiseOf(const PathToken& token) {
  constexpr uint8_t kTypes = OptionalFrame::kLast - OptionalFrame::kFirst + 1;
  return {static_cast<uint8_t>(OptionalFrame::kFirst + token[0] % kTypes),
          static_cast<uint16_t>(token[1] % (kMaxGrease + 1))};
}
}  // namespace

Outbound::Outbound(const SessionParts& parts)
    : parts_(parts),
      repairs_(parts.subflows, parts.dataTracker, parts.proactiveRecovery.policies(), parts.owner,
               parts.pool),
      scheduler_(makePathScheduler(parts.options.scheduler)),
      schedulerName_(parts.options.scheduler),
      measurement_(parts.subflows) {}

void Outbound::setTunables() {
  if (schedulerName_ == parts_.options.scheduler) return;
  scheduler_ = makePathScheduler(parts_.options.scheduler);
  schedulerName_ = parts_.options.scheduler;
}

bool Outbound::poll(Datagram& out, Time now) {
  ProactiveRecovery& proactiveRecovery = parts_.proactiveRecovery;
  return pollUrgent(out, now) || pollControl(out, now) || proactiveRecovery.pollTail(out, now) ||
         pollRepair(out, now) || proactiveRecovery.pollSecond(out, now) || pollNewData(out, now) ||
         proactiveRecovery.pollIdle(parts_.round.bytes() > 0, out, now) || pollMtuProbe(out, now) ||
         pollMeasurement(out, now);
}

// ---- urgent and control

bool Outbound::pollUrgent(Datagram& out, Time now) {
  SubflowSet& subflows = parts_.subflows;
  for (size_t i = 0; i < subflows.size(); ++i) {
    Subflow& s = subflows[(turn_ + i) % subflows.size()];
    bool own = s.mustSend();
    Subflow* carrier = own ? &s : ackCarrier(s);
    bool speaks = carrier && carrier->sender().canNumber() && (own || s.receiver().acks().due(now));
    if (!speaks && !s.hasPathFrame(now)) continue;
    Packet buffer = parts_.pool.allocate();
    if (!buffer) return false;
    turn_ = (turn_ + i + 1) % subflows.size();
    if (std::optional<Subflow::PathFrame> path = s.takePathFrame(now))
      return sendPathFrame(s, *path, std::move(buffer), out, now);
    DatagramBuilder build(*carrier, std::move(buffer), carrier->route(),
                          own ? carrier->mtu().current() : carrier->ackRoom());
    if (own) build.addTracked(PingFrame{});
    bool loss = s.receiver().acks().tellsLoss();
    // A probe may be lost, so the pending ACKs are sent on another path.
    if (!own || s.usable() || !subflows.fastest()) build.addAck(s, now);
    // After the ACK, because a packet that was decoded is lost for the ACK but needs no repair.
    if (loss) parts_.receiver.write(build);
    if (carrier->admission().isOpen(now) || (own && !subflows.anyUsable())) addData(build, now);
    return build.finish(parts_.sealer, out, now);
  }
  return false;
}

bool Outbound::sendPathFrame(Subflow& subflow, const Subflow::PathFrame& path, Packet buffer,
                             Datagram& out, Time now) {
  DatagramBuilder build(subflow, std::move(buffer), path.route, MtuDiscovery::kMinDatagram);
  if (path.response) build.add(*path.response);
  // From its first datagram on, the peer knows what a subflow is to be used for.
  const SubflowPreferenceFrame* wish = parts_.paths.roles().wishFor(subflow);
  if (wish && path.size == MtuDiscovery::kMinDatagram) build.add(*wish);
  if (path.challenge) build.add(*path.challenge);
  if (path.challenge && path.size == MtuDiscovery::kMinDatagram)
    build.add(noiseOf(path.challenge->token));
  if (path.size) build.padTo(path.size);
  if (path.ect) build.markEct();
  return build.finish(parts_.sealer, out, now);
}

// Packets that arrived on a silent or closed path are acknowledged on another one, so that they are
// not resent. Losses are reported on the fastest path, so that they are repaired sooner.
Subflow* Outbound::ackCarrier(Subflow& of) {
  if (of.usable() && !of.receiver().acks().tellsLoss()) return &of;
  if (Subflow* best = parts_.subflows.fastest()) return best;
  return of.ackRoom() == 0 ? nullptr : &of;
}

bool Outbound::pollControl(Datagram& out, Time now) {
  ControlFrames& controls = parts_.controls;
  while (parts_.dataTracker.hasSkips() && !controls.isFull())
    controls.add(*parts_.dataTracker.takeSkip());
  takeStreamWords();
  if (!parts_.receiver.hasWord() && !controls.isWaiting()) return false;
  Subflow* s = parts_.subflows.fastest();
  if (!s || !s->sender().canNumber()) return false;
  Packet buffer = parts_.pool.allocate();
  if (!buffer) return false;
  DatagramBuilder build(*s, std::move(buffer));
  controls.write(build);
  parts_.receiver.write(build);
  build.addAck(now);
  if (s->admission().isOpen(now)) addData(build, now);
  return build.finish(parts_.sealer, out, now);
}

// Stream resets and credit stay with the streams while many control frames are in flight, so that
// other control frames find room.
void Outbound::takeStreamWords() {
  ControlFrames& controls = parts_.controls;
  StreamResetFrame reset;
  while (!controls.isCrowded() && parts_.streams.pollReset(reset)) controls.add(reset);
  StreamCreditFrame credit;
  while (!controls.isCrowded() && parts_.streams.pollCredit(credit)) controls.add(credit);
}

bool Outbound::pollMtuProbe(Datagram& out, Time now) {
  for (Subflow* s : parts_.subflows) {
    size_t size = s->sender().mtuProbe();
    if (size == 0 || !s->sender().canNumber()) continue;
    Packet buffer = parts_.pool.allocate();
    if (!buffer) return false;
    DatagramBuilder build(*s, std::move(buffer), s->route(), size);
    build.makeMtuProbe(size);
    s->sender().onMtuProbeSent(size, now);
    return build.finish(parts_.sealer, out, now);
  }
  return false;
}

bool Outbound::pollMeasurement(Datagram& out, Time now) {
  if (!measurement_.isRunning()) return false;
  measurement_.update(now);
  SubflowSet& subflows = parts_.subflows;
  for (size_t i = 0; i < subflows.size(); ++i) {
    size_t position = (measured_ + i) % subflows.size();
    Subflow& s = subflows[position];
    if (!measurement_.means(s) || s.admission().opensForTestAt() > now || !s.sender().canNumber())
      continue;
    Packet buffer = parts_.pool.allocate();
    if (!buffer) return false;
    measured_ = position + 1;
    DatagramBuilder build(s, std::move(buffer));
    build.addTracked(PingFrame{});
    build.addAck(now);
    build.padTo(s.mtu().current());
    measurement_.onSent(s.mtu().current());
    return build.finish(parts_.sealer, out, now);
  }
  return false;
}

bool Outbound::pollClose(const CloseFrame& close, size_t& left, Datagram& out, Time now) {
  while (left > 0) {
    Subflow& s = parts_.subflows[--left];
    if (!s.usable() || !s.sender().canNumber()) continue;
    Packet buffer = parts_.pool.allocate();
    if (!buffer) return false;
    DatagramBuilder build(s, std::move(buffer));
    build.add(close);
    return build.finish(parts_.sealer, out, now);
  }
  return false;
}

// ---- repairs

bool Outbound::pollRepair(Datagram& out, Time now) {
  Subflow* path = nullptr;
  const DataUnit* datum = repairs_.pick(path, now);
  // Packets given up by pick() are reported to the peer at once, because nothing else may be sent
  // for long.
  if (!datum) return parts_.dataTracker.hasSkips() && pollControl(out, now);
  Packet buffer = parts_.pool.allocate();
  if (!buffer) return false;
  DatagramBuilder build(*path, std::move(buffer));
  addRepair(build, datum, now);
  build.addAck(now);
  addData(build, now);
  return build.finish(parts_.sealer, out, now);
}

void Outbound::addRepair(DatagramBuilder& build, const DataUnit* datum, Time now) {
  build.addDatum(datum);
  parts_.dataTracker.onSent(datum, build.subflow().id(), build.packetNumber());
  parts_.proactiveRecovery.onDataSent(*datum, now);
  build.subflow().sender().countRepair(datum->packet.size());
  ++counts_.retransmitted;
}

// ---- new data

bool Outbound::pollNewData(Datagram& out, Time now) {
  patienceEnd_ = kNever;
  smallWaits_ = false;
  if (parts_.round.bytes() > 0) lookAtPaths(now);
  Outcome outcome = offerNewData(out, now);
  if (outcome == Outcome::kNoPath && openOverflow(now)) outcome = offerNewData(out, now);
  if (outcome != Outcome::kNothing) return outcome == Outcome::kSent;
  parts_.paths.roles().onDrained(now);
  for (Subflow* s : parts_.subflows) {
    // A subflow that a load test fills is limited by its path, not by the application.
    if (s->admission().isOpen(now) && !measurement_.means(*s)) s->sender().setAppLimited();
  }
  return false;
}

void Outbound::lookAtPaths(Time now) {
  SubflowSet& subflows = parts_.subflows;
  views_.resize(subflows.size());
  Duration slowest{}, patience{};
  double rate = 0;
  for (size_t i = 0; i < subflows.size(); ++i) {
    views_[i] = subflows[i].view(now);
    if (!views_[i].usable) continue;
    slowest = std::max(slowest, views_[i].srtt);
    rate += views_[i].rate;
    patience = std::max(patience, orderPatience(views_[i].srtt, views_[i].rttvar));
  }
  parts_.dataTracker.setPatience(patience > 0s ? patience : kFirstPatience);
  const Duration target = queueTarget(parts_.options, slowest);
  parts_.packets.setCodel(target, queueInterval(parts_.options, slowest, target));
  if (!parts_.streams.isOn()) return;
  size_t narrowest = SIZE_MAX;  // MTU, of the paths that carry data
  for (const Subflow* s : subflows) {
    if (s->admission().takesData()) narrowest = std::min(narrowest, s->mtu().current());
  }
  if (narrowest == SIZE_MAX) narrowest = MtuDiscovery::kMinDatagram;
  parts_.streams.setPaths(narrowest - kDatagramOverhead, rate,
                          slowest > 0s ? slowest : kFirstPatience);
}

// Data is left over. Returns whether a metered path is open that may carry it. If the metered paths
// may be used, `views_` shows them, too.
bool Outbound::openOverflow(Time now) {
  if (!parts_.paths.roles().mayOverflow(now)) return false;
  bool anyOpen = false;
  for (size_t i = 0; i < parts_.subflows.size(); ++i) {
    views_[i] = parts_.subflows[i].view(now, true);
    anyOpen |= views_[i].open;
  }
  return anyOpen;
}

// Offers new data to the paths as `views_` shows them.
Outbound::Outcome Outbound::offerNewData(Datagram& out, Time now) {
  auto isOpen = [](const PathView& v) { return v.open; };
  auto isAhead = [](const PathView& v) { return v.ahead; };
  bool anyOpen = std::any_of(views_.begin(), views_.end(), isOpen);
  bool anyAhead = std::any_of(views_.begin(), views_.end(), isAhead);
  DrrCursor round(parts_.round);
  while (Candidate offer = round.offer(now)) {
    smallWaits_ |= offer.flow->burst.isSmall() || parts_.round.newWaits(*offer.flow);
    if (offer.isClaim()) {
      if (!mayTakeTurn(*offer.flow, now)) {
        if (!round.deferClaim()) return Outcome::kLater;
        continue;
      }
      if (takeTurn(round, *offer.flow, out, now)) return Outcome::kSent;
      continue;
    }
    if (offer.flow->delivery() == Delivery::kStream) {
      if (!cutToFit(offer)) return Outcome::kLater;
    } else if (dropTooLarge(round, *offer.unit)) {
      continue;
    }
    if (!parts_.dataTracker.mayCreate()) return Outcome::kLater;
    if (!anyAhead) return Outcome::kNoPath;
    if (!anyOpen && !offer.flow->burst.isSmall() && !parts_.round.newWaits(*offer.flow))
      return Outcome::kNoPath;
    if (std::optional<size_t> choice = choosePath(offer, now))
      return sendData(parts_.subflows[*choice], round, out, now) ? Outcome::kSent : Outcome::kLater;
    if (!round.pass(now)) break;
  }
  return parts_.round.bytes() > 0 && !anyOpen ? Outcome::kNoPath : Outcome::kNothing;
}

// While no path is open for the flow, it keeps its turn.
bool Outbound::mayTakeTurn(const Flow& flow, Time now) const {
  const SubflowSet& subflows = parts_.subflows;
  bool isSmall = flow.burst.isSmall();
  auto isOpen = [&](const Subflow* s) { return s->admission().isOpenFor(isSmall, now); };
  return std::any_of(subflows.begin(), subflows.end(), isOpen) || !subflows.anyUsable();
}

bool Outbound::takeTurn(DrrCursor& round, Flow& flow, Datagram& out, Time now) {
  bool sent = parts_.proactiveRecovery.pollTurn(flow, out, now);
  round.endClaim(sent ? out.bytes.size() : 0, sent);
  return sent;
}

// Drops the unit that the round offers if no usable path can carry it.
bool Outbound::dropTooLarge(DrrCursor& round, const Packet& unit) {
  const SubflowSet& subflows = parts_.subflows;
  auto carries = [&](const Subflow* s) {
    return s->admission().takesData() && mayFit(unit.size(), *s);
  };
  if (!subflows.anyUsable() || std::any_of(subflows.begin(), subflows.end(), carries)) return false;
  parts_.owner.onTooLarge(unit.view());
  round.take();
  countDrop(drops_, Drop::kTooBig);
  return true;
}

// Cuts the offered stream data if it fits no path at present. False when it could not be cut.
bool Outbound::cutToFit(const Candidate& offer) {
  size_t largest = 0;
  for (const Subflow* s : parts_.subflows)
    if (s->admission().takesData()) largest = std::max(largest, s->mtu().current());
  if (largest == 0 || dataFits(offer.unit->size(), 0, frameRoom(largest))) return true;
  return offer.flow->lane().cut(*offer.flow, largest - kDatagramOverhead);
}

// The path for the offered unit; nullopt: no path is open, or the unit waits for a better one.
std::optional<size_t> Outbound::choosePath(const Candidate& offer, Time now) {
  const SubflowSet& subflows = parts_.subflows;
  Flow& flow = *offer.flow;
  size_t size = offer.unit->size();
  size_t need = size + kDatagramOverhead;
  std::span<const PathView> paths = views_;
  auto isNarrow = [&](const Subflow* s) { return !fits(size, *s); };
  if (std::any_of(subflows.begin(), subflows.end(), isNarrow)) {
    fitting_ = views_;
    for (size_t i = 0; i < subflows.size(); ++i) {
      if (isNarrow(&subflows[i])) fitting_[i].open = fitting_[i].ahead = fitting_[i].usable = false;
    }
    paths = fitting_;
  }
  size_t drain = parts_.round.drain(flow) * need / size;  // in datagrams, overhead included
  FlowView view{need, drain, parts_.round.bytes(), flow.burst.isSmall()};
  flow.patience.until = kNever;  // after a reload it may come from another scheduler
  std::optional<size_t> choice = scheduler_->pick(paths, view, flow.patience, now);
  if (!choice) patienceEnd_ = std::min(patienceEnd_, flow.patience.until);
  return choice;
}

bool Outbound::sendData(Subflow& subflow, DrrCursor& round, Datagram& out, Time now) {
  Packet buffer = parts_.pool.allocate();
  if (!buffer) return false;
  DatagramBuilder build(subflow, std::move(buffer));
  build.addAck(now);
  addData(build, round, true, now);
  return build.finish(parts_.sealer, out, now);
}

void Outbound::addData(DatagramBuilder& build, Time now) {
  DrrCursor round(parts_.round);
  addData(build, round, false, now);
}

// Known losses are repaired before new data is sent (docs/design.md, decision 4). New data is added
// if the scheduler would send it on this path anyway.
void Outbound::addData(DatagramBuilder& build, DrrCursor& round, bool chosen, Time now) {
  Subflow& path = build.subflow();
  bool looked = chosen;
  while (!build.isFull()) {
    const DataUnit* repair =
        path.admission().duty() == PathRole::kOverflow ? nullptr : repairs_.first(now);
    if (repair && build.fits(repair->packet.size()) && repairs_.mayUse(*repair, path)) {
      addRepair(build, repair, now);
      continue;
    }
    Candidate offer = round.offer(now);
    if (!offer.unit || !build.fits(offer.unit->size()) || !parts_.dataTracker.mayCreate()) return;
    if (!std::exchange(chosen, false)) {
      if (!std::exchange(looked, true)) lookAtPaths(now);
      std::optional<size_t> choice = choosePath(offer, now);
      if (choice != parts_.subflows.positionOf(path.id()) && parts_.subflows.anyUsable()) return;
    }
    addNew(build, round, *offer.flow, now);
  }
}

// Adds the unit that the round offers; it belongs to `flow`.
void Outbound::addNew(DatagramBuilder& build, DrrCursor& round, Flow& flow, Time now) {
  const DataUnit* datum = parts_.dataTracker.create(flow, round.take(), now);
  build.addDatum(datum);
  parts_.dataTracker.onSent(datum, build.subflow().id(), build.packetNumber());
  if (datum->frame == 0) {
    ++counts_.innerSentPackets;
    counts_.innerSentBytes += datum->packet.size();
  }
  parts_.proactiveRecovery.onDataSent(*datum, now);
  if (parts_.proactiveRecovery.onNewData(datum)) parts_.round.claim(flow);
}

// ---- when to ask again

bool Outbound::hasWaiting() const {
  return parts_.round.hasWork() || parts_.dataTracker.queued() > 0 ||
         parts_.proactiveRecovery.hasSecond();
}

Time Outbound::nextDeadline(Time now) const {
  const DataTracker& dataTracker = parts_.dataTracker;
  Time next = kNever;
  if (hasWaiting()) {
    for (const Subflow* s : parts_.subflows) {
      Time opens = s->admission().opensAt(true);
      if (opens > now) next = std::min(next, opens);
      if (smallWaits_ && (opens = s->admission().opensAheadAt()) > now)
        next = std::min(next, opens);
      if (dataTracker.queued() == 0) continue;
      if ((opens = s->admission().opensForRepairAt(dataTracker.hasMoved())) > now)
        next = std::min(next, opens);
    }
  }
  if (dataTracker.queued() > 0)
    next =
        std::min(next, std::max(now, std::min(repairs_.readyAt(), dataTracker.repairExpiresAt())));
  if (parts_.round.bytes() == 0 && dataTracker.live() > 0)
    next = std::min(next, std::max(now, parts_.proactiveRecovery.idleAgainAt()));
  if (parts_.round.held() > 0) next = std::min(next, std::max(now, patienceEnd_));
  if (measurement_.isRunning()) {
    next = std::min(next, std::max(now, measurement_.endsAt()));
    for (const Subflow* s : parts_.subflows) {
      Time opens = s->admission().opensForTestAt();
      if (measurement_.means(*s) && opens > now) next = std::min(next, opens);
    }
  }
  return next;
}

// While the memory that all sessions share is used up, a session that needs some asks at every
// poll, because other sessions free it.
bool Outbound::isAtRest() const {
  auto canNumber = [](const Subflow* s) { return s->sender().canNumber(); };
  bool asksForRoom = hasWaiting() && !parts_.dataTracker.mayCreate();
  return !asksForRoom && !measurement_.isRunning() &&
         std::all_of(parts_.subflows.begin(), parts_.subflows.end(), canNumber);
}

}  // namespace braid
