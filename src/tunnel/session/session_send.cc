#include <algorithm>
#include <utility>

#include "tunnel/session/session.h"

namespace braid {

namespace {
/// Packets waiting for repair that are looked at for one whose own path is open.
constexpr int kRepairTries = 32;
/// And for one that is not to be given back by protection any moment. Ours.
constexpr int kAnswersAwaited = 256;
/// Most bytes of a RECOVERED frame: type, subflow and two variable-length integers.
constexpr size_t kMaxRecoveredFrame = 20;
}  // namespace

bool Session::pollDatagram(Datagram& out, Time now) {
  if (over_ && !closing_) return false;
  unsigned epoch = keys_.epoch();
  bool sent = closing_ ? pollClose(out, now)
                       : pollUrgent(out, now) || pollControl(out, now) || pollTail(out, now) ||
                             pollRepair(out, now) || pollDuplicate(out, now) || pollNewData(out, now) ||
                             pollProtection(out, now) || pollMtuProbe(out, now);
  if (keys_.epoch() != epoch) event({Event::Kind::kRekeyed, {}, "new keys"});
  if (sealer_.failed()) over_ = true;  // the cipher's limit: a new session takes over
  return sent;
}

// Path frames, probes and ACKs that are due: they do not wait for window or pacer.
bool Session::pollUrgent(Datagram& out, Time now) {
  for (size_t i = 0; i < subflows_.size(); ++i) {
    Subflow& s = subflows_[(turn_ + i) % subflows_.size()];
    bool own = s.mustSend();
    Subflow* carrier = own ? &s : ackCarrier(s);
    bool speaks = carrier && carrier->canNumber() && (own || s.acks().due(now));
    if (!speaks && !s.hasPathFrame(now)) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    turn_ = (turn_ + i + 1) % subflows_.size();
    if (std::optional<Subflow::PathFrame> path = s.takePathFrame(now)) {
      DatagramBuilder build(s, std::move(buffer), path->route, MtuDiscovery::kMinDatagram);
      if (path->response) build.add(*path->response);
      // From its first datagram on the peer knows what a subflow is for.
      const SubflowPreferenceFrame* wish = wishFor(s);
      if (wish && path->size == MtuDiscovery::kMinDatagram) build.add(*wish);
      if (path->challenge) build.add(*path->challenge);
      if (path->size) build.padTo(path->size);
      if (path->ect) build.markEct();
      return build.finish(sealer_, out, now);
    }
    DatagramBuilder build(*carrier, std::move(buffer));
    if (own) build.addTracked(PingFrame{});
    bool loss = s.acks().tellsLoss();
    build.addAck(s, now);
    if (loss) addRecovered(build);  // behind it: it is a loss, but what has been decoded needs no repair
    if (carrier->isOpen(now) || (own && !anyUsable())) addData(build, now);
    return build.finish(sealer_, out, now);
  }
  return false;
}

// What arrived on a path that is silent or gone is acknowledged over another one, so that it is not sent
// again. Losses are told over the fastest one, so that they are repaired sooner.
Subflow* Session::ackCarrier(Subflow& of) {
  if (of.usable() && !of.acks().tellsLoss()) return &of;
  if (Subflow* best = subflows_.fastest()) return best;
  return of.state() == Subflow::State::kClosed ? nullptr : &of;
}

bool Session::pollControl(Datagram& out, Time now) {
  while (ledger_.hasSkips() && !controls_.isFull()) controls_.add(*ledger_.takeSkip());
  if (recovered_.empty() && !controls_.isWaiting()) return false;
  Subflow* s = subflows_.fastest();
  if (!s || !s->canNumber()) return false;
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(*s, std::move(buffer));
  controls_.write(build);
  addRecovered(build);
  build.addAck(now);
  if (s->isOpen(now)) addData(build, now);
  return build.finish(sealer_, out, now);
}

bool Session::pollRepair(Datagram& out, Time now) {
  Subflow* path = nullptr;
  const Datum* datum = pickRepair(path, now);
  if (!datum) return false;
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(*path, std::move(buffer));
  addRepair(build, datum, now);
  build.addAck(now);
  addData(build, now);
  return build.finish(sealer_, out, now);
}

// With the best path for all it is the first one or none; a path of its own may be closed while another's is
// open.
const Datum* Session::pickRepair(Subflow*& path, Time now) {
  const Datum* datum = firstReady(now);
  for (int tries = 0; datum && tries < kRepairTries; ++tries) {
    if ((path = pathForRepair(*datum, now))) return datum;
    bool fitsSomewhere = false;
    for (Subflow* other : subflows_)
      fitsSomewhere |= mayFit(datum->packet.size(), *other) || !other->usable();
    const Datum* next = DataLedger::repairAfter(datum);
    if (!fitsSomewhere) {
      owner_.onTooLarge(datum->packet.view());
      ledger_.giveUp(datum, Drop::kTooBig);
    }
    datum = nextReady(next, now);
  }
  return nullptr;
}

// The queue is searched again when it has changed or when the first of those that wait is due.
const Datum* Session::firstReady(Time now) {
  const Datum* head = ledger_.nextRepair(now);
  if (ledger_.repairChanges() == noneReady_ && now < repairAt_) return nullptr;
  repairAt_ = kNever;
  const Datum* ready = nextReady(head, now);
  noneReady_ = ready ? UINT64_MAX : ledger_.repairChanges();
  return ready;
}

// What a copy or a parity on its way may give back is not sent again before the peer could say so.
const Datum* Session::nextReady(const Datum* datum, Time now) {
  for (int tries = 0; datum && tries < kAnswersAwaited; ++tries) {
    if (datum->answerDue <= now) return datum;
    repairAt_ = std::min(repairAt_, datum->answerDue);
    datum = DataLedger::repairAfter(datum);
  }
  return nullptr;
}

bool Session::sendData(Subflow& s, Datagram& out, Time now) {
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(s, std::move(buffer));
  build.addAck(now);
  addData(build, now, true);
  return build.finish(sealer_, out, now);
}

// Not on the path that just fell silent with it, while another is usable. A policy that repairs like MPTCP
// keeps it on its path as long as that is alive.
bool Session::mayRepair(const Datum& datum, const Subflow& subflow) const {
  const RecoveryPolicy& policy = policyOf(datum.flow->recoveryClass());
  const Subflow& own = subflows_.at(datum.subflow);
  if (policy.repairPlace() == RepairPlace::kOwnPath && own.takesData() && mayFit(datum.packet.size(), own))
    return datum.subflow == subflow.id();
  if (!datum.moved || datum.subflow != subflow.id()) return true;
  for (const Subflow* s : subflows_) {
    if (s->takesData() && s != &subflow) return false;
  }
  return true;
}

// The path that may send it now, that the packet fits, and where it is likely to arrive first.
Subflow* Session::pathForRepair(const Datum& datum, Time now) {
  Subflow* best = nullptr;
  for (Subflow* s : subflows_) {
    if (!s->isOpenForRepair(now) || !fits(datum.packet.size(), *s)) continue;
    if (!mayRepair(datum, *s)) continue;
    if (!best || s->expectedDelay() < best->expectedDelay()) best = s;
  }
  return best;
}

void Session::lookAtPaths(Time now) {
  views_.resize(subflows_.size());
  Duration slowest{};
  for (size_t i = 0; i < subflows_.size(); ++i) {
    views_[i] = subflows_[i].view(now);
    if (views_[i].usable) slowest = std::max(slowest, views_[i].srtt);
  }
  flows_.setTarget(queueTarget(options_, slowest));
}

// The path for the packet that the flow has in hand; nullopt: none is open, or it waits for a better one.
std::optional<size_t> Session::choosePath(Flow& flow, const Packet& packet, Time now) {
  size_t need = packet.size() + kDatagramOverhead;
  std::span<const PathView> paths = views_;
  auto isNarrow = [&](const Subflow* s) { return !fits(packet.size(), *s); };
  if (std::any_of(subflows_.begin(), subflows_.end(), isNarrow)) {
    fitting_ = views_;
    for (size_t i = 0; i < subflows_.size(); ++i) {
      if (isNarrow(&subflows_[i])) fitting_[i].open = fitting_[i].ahead = fitting_[i].usable = false;
    }
    paths = fitting_;
  }
  size_t drain = flows_.drain(flow) * need / packet.size();  // as datagrams
  FlowView view{need, drain, flows_.bytes(), flow.burst.isSmall()};
  flow.patience.until = kNever;  // after a reload that of another scheduler
  std::optional<size_t> choice = scheduler_->pick(paths, view, flow.patience, now);
  if (!choice) patienceEnd_ = std::min(patienceEnd_, flow.patience.until);
  return choice;
}

bool Session::pollNewData(Datagram& out, Time now) {
  patienceEnd_ = kNever;
  if (flows_.packets() > 0) lookAtPaths(now);
  Offer offer = offerNewData(out, now);
  if (offer == Offer::kNoPath && openOverflow(now)) offer = offerNewData(out, now);
  if (offer != Offer::kNothing) return offer == Offer::kSent;
  onDrained(now);
  for (Subflow* s : subflows_) {
    if (s->isOpen(now)) s->setAppLimited();
  }
  return false;
}

// To the paths as views_ shows them.
Session::Offer Session::offerNewData(Datagram& out, Time now) {
  flows_.rewind();
  auto isOpen = [](const PathView& v) { return v.open; };
  auto isAhead = [](const PathView& v) { return v.ahead; };
  bool anyOpen = std::any_of(views_.begin(), views_.end(), isOpen);
  bool anyAhead = std::any_of(views_.begin(), views_.end(), isAhead);
  while (true) {
    if (Flow* flow = flows_.turn(now)) {
      if (pollTurn(*flow, out, now)) return Offer::kSent;
      if (flows_.turn(now) == flow) return Offer::kLater;  // no path is open
      continue;
    }
    Flow* flow = flows_.peekFlow(now);
    if (!flow) break;
    const Packet& head = *flows_.peek(now);
    auto carries = [&](const Subflow* s) { return s->takesData() && mayFit(head.size(), *s); };
    if (anyUsable() && std::none_of(subflows_.begin(), subflows_.end(), carries)) {
      owner_.onTooLarge(head.view());
      flows_.pop(now, flow);
      owner_.onDrop(Drop::kTooBig, 1);
      continue;
    }
    if (!anyAhead) return Offer::kNoPath;
    if (!anyOpen && !flow->burst.isSmall() && !flows_.newWaits()) return Offer::kNoPath;
    if (std::optional<size_t> choice = choosePath(*flow, head, now))
      return sendData(subflows_[*choice], out, now) ? Offer::kSent : Offer::kLater;
    if (!flows_.pass(now)) break;
  }
  return flows_.packets() > 0 && !anyOpen ? Offer::kNoPath : Offer::kNothing;
}

bool Session::pollMtuProbe(Datagram& out, Time now) {
  for (Subflow* s : subflows_) {
    size_t size = s->mtuProbe();
    if (size == 0 || !s->canNumber()) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    DatagramBuilder build(*s, std::move(buffer), s->route(), size);
    build.makeMtuProbe(size);
    s->onMtuProbeSent(size, now);
    return build.finish(sealer_, out, now);
  }
  return false;
}

bool Session::pollClose(Datagram& out, Time now) {
  while (closesLeft_ > 0) {
    Subflow& s = subflows_[--closesLeft_];
    if (!s.usable() || !s.canNumber()) continue;
    Packet buffer = pool_.allocate();
    if (!buffer) return false;
    DatagramBuilder build(s, std::move(buffer));
    build.add(CloseFrame{});
    return build.finish(sealer_, out, now);
  }
  return false;
}

// Not sent again when lost: it only saves the peer a repair.
void Session::addRecovered(DatagramBuilder& build) {
  for (size_t i = 0; i < kMaxCostlyFrames && !recovered_.empty(); ++i) {
    if (!build.fitsControl(kMaxRecoveredFrame)) return;
    build.add(recovered_.back());
    recovered_.pop_back();
  }
}

// Known losses go before new data (architecture, decision 4). New data goes along where the scheduler would
// send it anyway.
void Session::addData(DatagramBuilder& build, Time now, bool chosen) {
  bool looked = chosen;
  if (!chosen) flows_.rewind();
  while (!build.isFull()) {
    const Datum* repair = build.subflow().duty() == PathDuty::kOverflow ? nullptr : firstReady(now);
    if (repair && build.fits(repair->packet.size()) && mayRepair(*repair, build.subflow())) {
      addRepair(build, repair, now);
      continue;
    }
    Flow* flow = flows_.peekFlow(now);
    if (!flow || !build.fits(flows_.peek(now)->size())) return;
    if (!std::exchange(chosen, false)) {
      if (!std::exchange(looked, true)) lookAtPaths(now);
      std::optional<size_t> path = choosePath(*flow, *flows_.peek(now), now);
      if (path != subflows_.positionOf(build.subflow().id()) && anyUsable()) return;
    }
    Packet packet = flows_.pop(now, flow);
    const Datum* datum = ledger_.create(*flow, std::move(packet), now);
    build.addDatum(datum);
    ledger_.onSent(datum, build.subflow().id(), build.packetNumber());
    noteData(build, *datum, now);
    ++counts_.sentPackets;
    counts_.sentBytes += datum->packet.size();
    onNewData(datum);
  }
}

void Session::addRepair(DatagramBuilder& build, const Datum* datum, Time now) {
  build.addDatum(datum);
  ledger_.onSent(datum, build.subflow().id(), build.packetNumber());
  noteData(build, *datum, now);
  build.subflow().countRepair(datum->packet.size());
  ++counts_.repaired;
}

void Session::noteData(const DatagramBuilder& build, const Datum& datum, Time now) {
  marks_[subflows_.positionOf(build.subflow().id())].noteData(datum.flow->recoveryClass(), now);
}

}  // namespace braid
