#include "tunnel/session/outbound.h"

#include <algorithm>
#include <span>
#include <utility>

namespace braid {

namespace {
/// A frame without a meaning, so that no peer forgets to skip what it does not know (RFC 8701). It is chosen by the
/// token, which is noise already.
OptionalFrame noiseOf(const PathToken& token) {
  constexpr uint8_t kTypes = OptionalFrame::kLast - OptionalFrame::kFirst + 1;
  return {static_cast<uint8_t>(OptionalFrame::kFirst + token[0] % kTypes),
          static_cast<uint16_t>(token[1] % (kMaxGrease + 1))};
}
}  // namespace

Outbound::Outbound(const SessionParts& parts)
    : parts_(parts),
      repairs_(parts.subflows, parts.ledger, parts.protector.policies(), parts.owner, parts.pool),
      scheduler_(makePathScheduler(parts.options.scheduler)),
      schedulerName_(parts.options.scheduler),
      measurement_(parts.subflows) {}

void Outbound::setTunables() {
  if (schedulerName_ == parts_.options.scheduler) return;
  scheduler_ = makePathScheduler(parts_.options.scheduler);
  schedulerName_ = parts_.options.scheduler;
}

bool Outbound::poll(Datagram& out, Time now) {
  Protector& protector = parts_.protector;
  return pollUrgent(out, now) || pollControl(out, now) || protector.pollTail(out, now) ||
         pollRepair(out, now) || protector.pollSecond(out, now) || pollNewData(out, now) ||
         protector.pollIdle(parts_.round.bytes() > 0, out, now) || pollMtuProbe(out, now) ||
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
    // A probe may not arrive: what it would carry goes over another path.
    if (!own || s.usable() || !subflows.fastest()) build.addAck(s, now);
    // Behind it: it is a loss, but what has been decoded needs no repair.
    if (loss) parts_.receiver.write(build);
    if (carrier->gate().isOpen(now) || (own && !subflows.anyUsable())) addData(build, now);
    return build.finish(parts_.sealer, out, now);
  }
  return false;
}

bool Outbound::sendPathFrame(Subflow& subflow, const Subflow::PathFrame& path, Packet buffer, Datagram& out,
                             Time now) {
  DatagramBuilder build(subflow, std::move(buffer), path.route, MtuDiscovery::kMinDatagram);
  if (path.response) build.add(*path.response);
  // From its first datagram on the peer knows what a subflow is for.
  const SubflowPreferenceFrame* wish = parts_.paths.duties().wishFor(subflow);
  if (wish && path.size == MtuDiscovery::kMinDatagram) build.add(*wish);
  if (path.challenge) build.add(*path.challenge);
  if (path.challenge && path.size == MtuDiscovery::kMinDatagram) build.add(noiseOf(path.challenge->token));
  if (path.size) build.padTo(path.size);
  if (path.ect) build.markEct();
  return build.finish(parts_.sealer, out, now);
}

// What arrived on a path that is silent or gone is acknowledged over another one, so that it is not sent
// again. Losses are told over the fastest one, so that they are repaired sooner.
Subflow* Outbound::ackCarrier(Subflow& of) {
  if (of.usable() && !of.receiver().acks().tellsLoss()) return &of;
  if (Subflow* best = parts_.subflows.fastest()) return best;
  return of.ackRoom() == 0 ? nullptr : &of;
}

bool Outbound::pollControl(Datagram& out, Time now) {
  ControlFrames& controls = parts_.controls;
  while (parts_.ledger.hasSkips() && !controls.isFull()) controls.add(*parts_.ledger.takeSkip());
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
  if (s->gate().isOpen(now)) addData(build, now);
  return build.finish(parts_.sealer, out, now);
}

// They wait in the lane while many are on their way, so that others find room among them.
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
    if (!measurement_.means(s) || s.gate().opensForTestAt() > now || !s.sender().canNumber()) continue;
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
  const Datum* datum = repairs_.pick(path, now);
  // What was given up in the search is told at once: nothing else may leave for long.
  if (!datum) return parts_.ledger.hasSkips() && pollControl(out, now);
  Packet buffer = parts_.pool.allocate();
  if (!buffer) return false;
  DatagramBuilder build(*path, std::move(buffer));
  addRepair(build, datum, now);
  build.addAck(now);
  addData(build, now);
  return build.finish(parts_.sealer, out, now);
}

void Outbound::addRepair(DatagramBuilder& build, const Datum* datum, Time now) {
  build.addDatum(datum);
  parts_.ledger.onSent(datum, build.subflow().id(), build.packetNumber());
  parts_.protector.onDataSent(*datum, now);
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
  parts_.paths.duties().onDrained(now);
  for (Subflow* s : parts_.subflows) {
    // A subflow that a load test fills is limited by its path.
    if (s->gate().isOpen(now) && !measurement_.means(*s)) s->sender().setAppLimited();
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
  parts_.ledger.setPatience(patience > 0s ? patience : kFirstPatience);
  parts_.packets.setCodel(queueTarget(parts_.options, slowest), queueInterval(parts_.options, slowest));
  if (!parts_.streams.isOn()) return;
  size_t narrowest = SIZE_MAX;  // of the paths that take data
  for (const Subflow* s : subflows) {
    if (s->gate().takesData()) narrowest = std::min(narrowest, s->mtu().current());
  }
  if (narrowest == SIZE_MAX) narrowest = MtuDiscovery::kMinDatagram;
  parts_.streams.setPaths(narrowest - kDatagramOverhead, rate, slowest > 0s ? slowest : kFirstPatience);
}

// Data is left over. Whether a metered path is open that may take it: then the views are of those, too.
bool Outbound::openOverflow(Time now) {
  if (!parts_.paths.duties().mayOverflow(now)) return false;
  bool anyOpen = false;
  for (size_t i = 0; i < parts_.subflows.size(); ++i) {
    views_[i] = parts_.subflows[i].view(now, true);
    anyOpen |= views_[i].open;
  }
  return anyOpen;
}

// To the paths as views_ shows them.
Outbound::Outcome Outbound::offerNewData(Datagram& out, Time now) {
  auto isOpen = [](const PathView& v) { return v.open; };
  auto isAhead = [](const PathView& v) { return v.ahead; };
  bool anyOpen = std::any_of(views_.begin(), views_.end(), isOpen);
  bool anyAhead = std::any_of(views_.begin(), views_.end(), isAhead);
  Round round(parts_.round);
  while (Offer offer = round.offer(now)) {
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
    if (!parts_.ledger.mayCreate()) return Outcome::kLater;
    if (!anyAhead) return Outcome::kNoPath;
    if (!anyOpen && !offer.flow->burst.isSmall() && !parts_.round.newWaits(*offer.flow))
      return Outcome::kNoPath;
    if (std::optional<size_t> choice = choosePath(offer, now))
      return sendData(parts_.subflows[*choice], round, out, now) ? Outcome::kSent : Outcome::kLater;
    if (!round.pass(now)) break;
  }
  return parts_.round.bytes() > 0 && !anyOpen ? Outcome::kNoPath : Outcome::kNothing;
}

// While no path is open for the flow its turn stays.
bool Outbound::mayTakeTurn(const Flow& flow, Time now) const {
  const SubflowSet& subflows = parts_.subflows;
  bool isSmall = flow.burst.isSmall();
  auto isOpen = [&](const Subflow* s) { return s->gate().isOpenFor(isSmall, now); };
  return std::any_of(subflows.begin(), subflows.end(), isOpen) || !subflows.anyUsable();
}

bool Outbound::takeTurn(Round& round, Flow& flow, Datagram& out, Time now) {
  bool sent = parts_.protector.pollTurn(flow, out, now);
  round.endClaim(sent ? out.bytes.size() : 0, sent);
  return sent;
}

// Drops the unit that the round offers when no path that is usable carries it.
bool Outbound::dropTooLarge(Round& round, const Packet& unit) {
  const SubflowSet& subflows = parts_.subflows;
  auto carries = [&](const Subflow* s) { return s->gate().takesData() && mayFit(unit.size(), *s); };
  if (!subflows.anyUsable() || std::any_of(subflows.begin(), subflows.end(), carries)) return false;
  parts_.owner.onTooLarge(unit.view());
  round.take();
  countDrop(drops_, Drop::kTooBig);
  return true;
}

// Cuts what is offered of a stream, when it fits no path as they are now. False when it could not be cut.
bool Outbound::cutToFit(const Offer& offer) {
  size_t largest = 0;
  for (const Subflow* s : parts_.subflows)
    if (s->gate().takesData()) largest = std::max(largest, s->mtu().current());
  if (largest == 0 || dataFits(offer.unit->size(), 0, frameRoom(largest))) return true;
  return offer.flow->lane().cut(*offer.flow, largest - kDatagramOverhead);
}

// The path for the unit that is offered; nullopt: none is open, or it waits for a better one.
std::optional<size_t> Outbound::choosePath(const Offer& offer, Time now) {
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
  size_t drain = parts_.round.drain(flow) * need / size;  // as datagrams
  FlowView view{need, drain, parts_.round.bytes(), flow.burst.isSmall()};
  flow.patience.until = kNever;  // after a reload that of another scheduler
  std::optional<size_t> choice = scheduler_->pick(paths, view, flow.patience, now);
  if (!choice) patienceEnd_ = std::min(patienceEnd_, flow.patience.until);
  return choice;
}

bool Outbound::sendData(Subflow& subflow, Round& round, Datagram& out, Time now) {
  Packet buffer = parts_.pool.allocate();
  if (!buffer) return false;
  DatagramBuilder build(subflow, std::move(buffer));
  build.addAck(now);
  addData(build, round, true, now);
  return build.finish(parts_.sealer, out, now);
}

void Outbound::addData(DatagramBuilder& build, Time now) {
  Round round(parts_.round);
  addData(build, round, false, now);
}

// Known losses go before new data (architecture, decision 4). New data goes along where the scheduler would
// send it anyway.
void Outbound::addData(DatagramBuilder& build, Round& round, bool chosen, Time now) {
  Subflow& path = build.subflow();
  bool looked = chosen;
  while (!build.isFull()) {
    const Datum* repair = path.gate().duty() == PathDuty::kOverflow ? nullptr : repairs_.first(now);
    if (repair && build.fits(repair->packet.size()) && repairs_.mayUse(*repair, path)) {
      addRepair(build, repair, now);
      continue;
    }
    Offer offer = round.offer(now);
    if (!offer.unit || !build.fits(offer.unit->size()) || !parts_.ledger.mayCreate()) return;
    if (!std::exchange(chosen, false)) {
      if (!std::exchange(looked, true)) lookAtPaths(now);
      std::optional<size_t> choice = choosePath(offer, now);
      if (choice != parts_.subflows.positionOf(path.id()) && parts_.subflows.anyUsable()) return;
    }
    addNew(build, round, *offer.flow, now);
  }
}

// The unit that the round offers, which is of that flow.
void Outbound::addNew(DatagramBuilder& build, Round& round, Flow& flow, Time now) {
  const Datum* datum = parts_.ledger.create(flow, round.take(), now);
  build.addDatum(datum);
  parts_.ledger.onSent(datum, build.subflow().id(), build.packetNumber());
  if (datum->frame == 0) {
    ++counts_.innerSentPackets;
    counts_.innerSentBytes += datum->packet.size();
  }
  parts_.protector.onDataSent(*datum, now);
  if (parts_.protector.onNewData(datum)) parts_.round.claim(flow);
}

// ---- when to ask again

bool Outbound::hasWaiting() const {
  return parts_.round.hasWork() || parts_.ledger.queued() > 0 || parts_.protector.hasSecond();
}

Time Outbound::nextDeadline(Time now) const {
  const DataLedger& ledger = parts_.ledger;
  Time next = kNever;
  if (hasWaiting()) {
    for (const Subflow* s : parts_.subflows) {
      Time opens = s->gate().opensAt(true);
      if (opens > now) next = std::min(next, opens);
      if (smallWaits_ && (opens = s->gate().opensAheadAt()) > now) next = std::min(next, opens);
      if (ledger.queued() == 0) continue;
      if ((opens = s->gate().opensForRepairAt(ledger.hasMoved())) > now) next = std::min(next, opens);
    }
  }
  if (ledger.queued() > 0)
    next = std::min(next, std::max(now, std::min(repairs_.readyAt(), ledger.repairExpiresAt())));
  if (parts_.round.bytes() == 0 && ledger.live() > 0)
    next = std::min(next, std::max(now, parts_.protector.idleAgainAt()));
  if (parts_.round.held() > 0) next = std::min(next, std::max(now, patienceEnd_));
  if (measurement_.isRunning()) {
    next = std::min(next, std::max(now, measurement_.endsAt()));
    for (const Subflow* s : parts_.subflows) {
      Time opens = s->gate().opensForTestAt();
      if (measurement_.means(*s) && opens > now) next = std::min(next, opens);
    }
  }
  return next;
}

// While the room that all sessions share is used up, who lacks some asks in every turn: others free it.
bool Outbound::isAtRest() const {
  auto canNumber = [](const Subflow* s) { return s->sender().canNumber(); };
  bool asksForRoom = hasWaiting() && !parts_.ledger.mayCreate();
  return !asksForRoom && !measurement_.isRunning() &&
         std::all_of(parts_.subflows.begin(), parts_.subflows.end(), canNumber);
}

}  // namespace braid
