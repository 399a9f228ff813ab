#include "tunnel/session/data_sender.h"

#include <algorithm>
#include <span>
#include <utility>

namespace braid {

DataSender::DataSender(const SessionOptions& options, PacketPool& pool, DatagramSealer& sealer,
                       PathManager& paths, DataTracker& dataTracker, SessionQueues& queues,
                       ProactiveRecovery& proactiveRecovery, PacketEvents& events)
    : options_(options),
      pool_(pool),
      sealer_(sealer),
      roles_(paths.roles()),
      subflows_(paths.subflows()),
      dataTracker_(dataTracker),
      queues_(queues),
      drr_(queues.drr),
      proactiveRecovery_(proactiveRecovery),
      events_(events),
      repairs_(subflows_, dataTracker, proactiveRecovery.policies(), pool),
      scheduler_(makePathScheduler(options.scheduler)),
      schedulerName_(options.scheduler) {}

void DataSender::setTunables() {
  if (schedulerName_ == options_.scheduler) return;
  scheduler_ = makePathScheduler(options_.scheduler);
  schedulerName_ = options_.scheduler;
}

// ---- repairs

bool DataSender::pollRepair(Datagram& out, Time now) {
  Subflow* path = nullptr;
  UnitRef unit = repairs_.pick(path, now);
  if (!unit) return false;
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(*path, std::move(buffer));
  addRepair(build, unit, now);
  build.addAck(now);
  fill(build, now);
  return build.finish(sealer_, out, now);
}

void DataSender::addRepair(DatagramBuilder& build, UnitRef unit, Time now) {
  build.addUnit(unit);
  dataTracker_.onSent(unit, build.subflow().id(), build.packetNumber());
  proactiveRecovery_.onDataSent(*unit, now);
  build.subflow().sender().countRepair(unit->packet.size());
  ++counts_.retransmitted;
  counts_.retransmitDelay += toMilliseconds(now - unit->firstSent);
}

OutboundCounts DataSender::counts() const {
  OutboundCounts out = counts_;
  out.undelivered = dataTracker_.undelivered();
  return out;
}

// ---- new data

DataSender::Outcome DataSender::pollNew(Datagram& out, Time now) {
  askSchedulerAt_ = kNever;
  priorityWaits_ = false;
  if (drr_.bytes() > 0) refreshViews(now);
  Outcome outcome = offerNew(out, now);
  if (outcome == Outcome::kNoPath && addOverflowPaths(now)) outcome = offerNew(out, now);
  return outcome;
}

void DataSender::refreshViews(Time now) {
  views_.resize(subflows_.size());
  Duration slowest{}, patience{};
  double rate = 0;
  for (size_t i = 0; i < subflows_.size(); ++i) {
    views_[i] = subflows_[i].view(now);
    if (!views_[i].usable) continue;
    slowest = std::max(slowest, views_[i].srtt);
    rate += views_[i].rate;
    patience = std::max(patience, orderPatience(views_[i].srtt, views_[i].rttvar));
  }
  if (patience > 0s) dataTracker_.setPatience(patience);  // no path usable: what was learned stays
  const Duration target = queueTarget(options_, slowest);
  queues_.packets.setCodel(target, queueInterval(options_, slowest, target));
  if (!queues_.streams.isOn()) return;
  size_t narrowest = SIZE_MAX;  // MTU, of the paths that carry data
  for (const Subflow* s : subflows_) {
    if (s->admission().takesData()) narrowest = std::min(narrowest, s->mtu().current());
  }
  if (narrowest == SIZE_MAX) narrowest = MtuDiscovery::kMinDatagram;
  queues_.streams.setPaths(narrowest - kDatagramOverhead, rate,
                           slowest > 0s ? slowest : kFirstPatience);
}

// Data is left over. Returns whether a metered path is open that may carry it. If the metered paths
// may be used, `views_` shows them, too.
bool DataSender::addOverflowPaths(Time now) {
  if (!roles_.mayOverflow(now)) return false;
  bool anyOpen = false;
  for (size_t i = 0; i < subflows_.size(); ++i) {
    views_[i] = subflows_[i].view(now, true);
    anyOpen |= views_[i].open;
  }
  return anyOpen;
}

// Offers new data to the paths as `views_` shows them.
DataSender::Outcome DataSender::offerNew(Datagram& out, Time now) {
  auto isOpen = [](const PathView& v) { return v.open; };
  auto isAhead = [](const PathView& v) { return v.ahead; };
  bool anyOpen = std::any_of(views_.begin(), views_.end(), isOpen);
  bool anyAhead = std::any_of(views_.begin(), views_.end(), isAhead);
  DrrCursor cursor(drr_);
  while (Candidate offer = cursor.peek(now)) {
    priorityWaits_ |= offer.flow->burst.isSmall() || drr_.hasOtherNew(*offer.flow);
    if (offer.isBareTurn()) {
      if (!maySendProtection(*offer.flow, now)) {
        if (!cursor.deferTurn()) return Outcome::kLater;
        continue;
      }
      if (sendProtection(cursor, *offer.flow, out, now)) return Outcome::kSent;
      continue;
    }
    if (offer.flow->delivery() == Delivery::kStream) {
      if (!cutToFit(offer)) return Outcome::kLater;
    } else if (dropTooLarge(cursor, *offer.unit)) {
      continue;
    }
    if (!dataTracker_.mayCreate()) return Outcome::kLater;
    if (!anyAhead) return Outcome::kNoPath;
    if (!anyOpen && !offer.flow->burst.isSmall() && !drr_.hasOtherNew(*offer.flow))
      return Outcome::kNoPath;
    if (std::optional<size_t> choice = choosePath(offer, now))
      return send(subflows_[*choice], cursor, out, now) ? Outcome::kSent : Outcome::kLater;
    if (!cursor.skip(now)) break;
  }
  return drr_.bytes() > 0 && !anyOpen ? Outcome::kNoPath : Outcome::kNothing;
}

// While no path is open for the flow, it keeps its turn.
bool DataSender::maySendProtection(const Flow& flow, Time now) const {
  bool isSmall = flow.burst.isSmall();
  auto isOpen = [&](const Subflow* s) { return s->admission().isOpenFor(isSmall, now); };
  return std::any_of(subflows_.begin(), subflows_.end(), isOpen) || !subflows_.anyUsable();
}

bool DataSender::sendProtection(DrrCursor& cursor, Flow& flow, Datagram& out, Time now) {
  bool sent = proactiveRecovery_.pollTurn(flow, out, now);
  cursor.endTurn(sent ? out.bytes.size() : 0, sent);
  return sent;
}

// Drops the unit that the scheduler offers if no usable path can carry it.
bool DataSender::dropTooLarge(DrrCursor& cursor, const Packet& unit) {
  auto carries = [&](const Subflow* s) {
    return s->admission().takesData() && mayFit(unit.size(), *s);
  };
  if (!subflows_.anyUsable() || std::any_of(subflows_.begin(), subflows_.end(), carries))
    return false;
  events_.push(PacketEvent::Kind::kTooLarge, cursor.take());
  countDrop(drops_, Drop::kTooBig);
  return true;
}

// Cuts the offered stream data if it fits no path at present. False when it could not be cut.
bool DataSender::cutToFit(const Candidate& offer) {
  size_t largest = 0;
  for (const Subflow* s : subflows_)
    if (s->admission().takesData()) largest = std::max(largest, s->mtu().current());
  if (largest == 0 || dataFits(offer.unit->size(), 0, frameRoom(largest))) return true;
  return offer.flow->lane().cut(*offer.flow, largest - kDatagramOverhead);
}

// The path for the offered unit; nullopt: no path is open, or the unit waits for a better one.
std::optional<size_t> DataSender::choosePath(const Candidate& offer, Time now) {
  Flow& flow = *offer.flow;
  size_t size = offer.unit->size();
  size_t need = size + kDatagramOverhead;
  std::span<const PathView> paths = views_;
  auto isNarrow = [&](const Subflow* s) { return !fits(size, *s); };
  if (std::any_of(subflows_.begin(), subflows_.end(), isNarrow)) {
    fitting_ = views_;
    for (size_t i = 0; i < subflows_.size(); ++i) {
      if (isNarrow(&subflows_[i]))
        fitting_[i].open = fitting_[i].ahead = fitting_[i].usable = false;
    }
    paths = fitting_;
  }
  size_t drain = drr_.bytesUntilDrained(flow) * need / size;  // in datagrams, overhead included
  FlowView view{need, drain, drr_.bytes(), flow.burst.isSmall()};
  flow.patience.update(flow.burst.pauses(), flow.burst.drains());
  std::optional<size_t> choice = scheduler_->pick(paths, view, flow.patience, now);
  if (!choice) askSchedulerAt_ = std::min(askSchedulerAt_, flow.patience.until);
  return choice;
}

bool DataSender::send(Subflow& subflow, DrrCursor& cursor, Datagram& out, Time now) {
  Packet buffer = pool_.allocate();
  if (!buffer) return false;
  DatagramBuilder build(subflow, std::move(buffer));
  build.addAck(now);
  fill(build, cursor, true, now);
  return build.finish(sealer_, out, now);
}

void DataSender::fill(DatagramBuilder& build, Time now) {
  DrrCursor cursor(drr_);
  fill(build, cursor, false, now);
}

// Known losses are repaired before new data is sent (docs/design.md, decision 4). New data is added
// if the scheduler would send it on this path anyway.
void DataSender::fill(DatagramBuilder& build, DrrCursor& cursor, bool chosen, Time now) {
  Subflow& path = build.subflow();
  bool refreshed = chosen;
  while (!build.isFull()) {
    UnitRef repair = path.admission().role() == PathRole::kOverflow ? nullptr : repairs_.first(now);
    if (repair && build.fits(repair->packet.size()) && repairs_.mayUse(*repair, path, now)) {
      addRepair(build, repair, now);
      continue;
    }
    Candidate offer = cursor.peek(now);
    if (!offer.unit || !build.fits(offer.unit->size()) || !dataTracker_.mayCreate()) return;
    if (!std::exchange(chosen, false)) {
      if (!std::exchange(refreshed, true)) refreshViews(now);
      std::optional<size_t> choice = choosePath(offer, now);
      if (choice != subflows_.positionOf(path.id()) && subflows_.anyUsable()) return;
    }
    addNew(build, cursor, *offer.flow, now);
  }
}

// Adds the unit that the scheduler offers; it belongs to `flow`.
void DataSender::addNew(DatagramBuilder& build, DrrCursor& cursor, Flow& flow, Time now) {
  UnitRef unit = dataTracker_.create(flow, cursor.take(), now);
  build.addUnit(unit);
  dataTracker_.onSent(unit, build.subflow().id(), build.packetNumber());
  if (unit->frame == 0) {
    ++counts_.innerSentPackets;
    counts_.innerSentBytes += unit->packet.size();
  }
  proactiveRecovery_.onDataSent(*unit, now);
  if (proactiveRecovery_.onNewData(unit)) drr_.requestTurn(flow);
}

// ---- when to ask again

bool DataSender::hasWaiting() const {
  return drr_.hasWork() || dataTracker_.queuedRepairs() > 0 || proactiveRecovery_.hasSecond();
}

Time DataSender::nextDeadline(Time now) const {
  Time next = kNever;
  if (hasWaiting()) {
    for (const Subflow* s : subflows_) {
      Time opens = s->admission().opensAt(true);
      if (opens > now) next = std::min(next, opens);
      if (priorityWaits_ && (opens = s->admission().opensAheadAt()) > now)
        next = std::min(next, opens);
      if (dataTracker_.queuedRepairs() == 0) continue;
      if ((opens = s->admission().opensForRepairAt(dataTracker_.hasMoved())) > now)
        next = std::min(next, opens);
    }
  }
  if (dataTracker_.queuedRepairs() > 0)
    next =
        std::min(next, std::max(now, std::min(repairs_.readyAt(), dataTracker_.repairExpiresAt())));
  if (drr_.bytes() == 0 && dataTracker_.records() > 0)
    next = std::min(next, std::max(now, proactiveRecovery_.idleAgainAt()));
  if (drr_.skipped() > 0) next = std::min(next, std::max(now, askSchedulerAt_));
  return next;
}

}  // namespace braid
