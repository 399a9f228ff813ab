#include "tunnel/queue/data_tracker.h"

#include <utility>

#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow.h"

namespace braid {

namespace {
/// Most skip announcements kept. The receiver gets none of the further ones; its hold time ends the
/// wait for those packets.
constexpr size_t kMaxSkips = 256;

Drop lateCause(const DataUnit& unit) {
  return unit.delivery == Delivery::kReliable ? Drop::kExpired : Drop::kLostDatagram;
}
}  // namespace

UnitRef DataTracker::create(Flow& flow, Packet packet, Time now) {
  DataUnit& d = *data_.take();
  d = DataUnit{};
  d.packet = std::move(packet);
  d.flow = &flow;
  bool isRange = flow.delivery() == Delivery::kStream;
  d.dsn =
      isRange ? Dsn(flow.unit.offset) : flow.sent.nextDsn_[static_cast<size_t>(flow.delivery())]++;
  d.frame = isRange ? flow.unit.frame : uint8_t{0};
  d.firstSent = now;
  d.slot = flow.slot();
  d.delivery = flow.delivery();
  flow.sent.list_.pushBack(d);
  ++flow.sent.unacked_;
  setUsed(used() + 1);
  return UnitRef(&d);
}

void DataTracker::onSent(UnitRef unit, SubflowId subflow, PacketNumber pn) {
  DataUnit& d = *unit.unit_;
  d.subflow = subflow;
  d.pn = pn;
  d.moved = false;
  ++d.refs;
  ++d.carriers;
  if (!d.isLost()) return;
  d.state = UnitState::kInFlight;
  dequeue(d);
}

void DataTracker::onCopied(UnitRef unit, Time answerDue) {
  DataUnit& d = *unit.unit_;
  d.answerDue = answerDue;
  d.protection = UnitProtection::kCopied;
  ++d.refs;
  ++d.carriers;
}

void DataTracker::onCoded(UnitRef unit, Time answerDue) {
  DataUnit& d = *unit.unit_;
  d.answerDue = answerDue;
  setCoded(d);
}

// What was copied is in no further coding block.
void DataTracker::setCoded(DataUnit& unit) {
  if (!unit.isProtected()) unit.protection = UnitProtection::kCoded;
}

void DataTracker::onDelivered(UnitRef unit, bool wasCarrier) {
  DataUnit& d = *unit.unit_;
  if (wasCarrier) --d.carriers;
  if (!d.isDone()) finish(d, UnitState::kDelivered);
}

void DataTracker::onRecovered(UnitRef unit) {
  if (!unit->isDone()) finish(*unit.unit_, UnitState::kDelivered);
}

void DataTracker::onLost(UnitRef unit, Time now, bool isCopy) {
  DataUnit& d = *unit.unit_;
  --d.carriers;
  if (!d.isInFlight() || (d.carriers > 0 && (isCopy || d.mayCopy()))) return;
  if (isTooLate(d, now)) return giveUp(unit, lateCause(d));
  enqueue(d);
}

void DataTracker::onMoved(UnitRef unit, Time now, bool isCopy) {
  DataUnit& d = *unit.unit_;
  --d.carriers;
  d.moved |= !isCopy;
  if (!d.isInFlight() || (d.carriers > 0 && (isCopy || d.mayCopy()))) return;
  if (isTooLate(d, now)) return giveUp(unit, lateCause(d));
  enqueue(d);
}

UnitRef DataTracker::nextRepair(Time now) {
  while (DataUnit* first = repairs_.front()) {
    if (!isTooLate(*first, now)) return UnitRef(first);
    giveUp(UnitRef(first), lateCause(*first));
  }
  return nullptr;
}

// isTooLate() is true only after the time limit has passed, hence 1 ns more.
Time DataTracker::repairExpiresAt() const {
  const DataUnit* first = repairs_.front();
  if (!first || first->delivery == Delivery::kStream) return kNever;
  return first->firstSent + timeLimit(first->delivery) + 1ns;
}

void DataTracker::giveUp(UnitRef unit, Drop cause) {
  if (unit->isDone()) return;
  countDrop(drops_, cause);
  if (unit->delivery != Delivery::kTimely && unit->delivery != Delivery::kStream)
    addSkip({unit->slot, unit->dsn, 1});
  using Kind = PacketEvent::Kind;
  if (events_ && (cause == Drop::kExpired || cause == Drop::kTooBig))
    events_->push(cause == Drop::kExpired ? Kind::kDropped : Kind::kTooLarge,
                  std::move(unit.unit_->packet));
  finish(*unit.unit_, UnitState::kAbandoned);
}

uint64_t DataTracker::undelivered() const {
  uint64_t all = 0;
  for (uint64_t count : drops_) all += count;
  return all - drops_[static_cast<size_t>(Drop::kTooBig)];
}

void DataTracker::giveUpRepairs(Drop cause) {
  while (!repairs_.empty()) giveUp(UnitRef(repairs_.front()), cause);
}

std::optional<SkipFrame> DataTracker::takeSkip() {
  if (skips_.empty()) return std::nullopt;
  SkipFrame skip = skips_.back();
  skips_.pop_back();
  return skip;
}

void DataTracker::addSkip(const SkipFrame& skip) {
  if (!skips_.empty()) {
    SkipFrame& last = skips_.back();
    if (last.flow == skip.flow && last.first + last.count == skip.first &&
        last.count + skip.count <= kMaxSkip) {
      last.count += skip.count;
      return;
    }
  }
  if (skips_.size() < kMaxSkips) skips_.push_back(skip);
}

UnitRef DataTracker::oldestOf(const Flow& flow) {
  return flow.sent.oldest();
}

void DataTracker::finish(DataUnit& unit, UnitState state) {
  const bool wasLost = unit.isLost();
  unit.state = state;
  unit.packet.reset();
  SentData& sent = unit.flow->sent;
  sent.list_.erase(unit);
  --sent.unacked_;
  setUsed(used() - 1);
  Flow& flow = *std::exchange(unit.flow, nullptr);
  if (wasLost) dequeue(unit);
  if (sent.unacked_ == 0 && flow.delivery() == Delivery::kStream) flow.lane().onAllDone(flow);
}

// In-flight datagrams that carry the whole range still count for its first part. The second part is
// sent again in any case.
bool DataTracker::cut(UnitRef unit, size_t size, PacketPool& pool) {
  DataUnit& d = *unit.unit_;
  if (d.frame == 0 || !d.isLost() || !hasRoom(1)) return false;
  Packet rest = pool.allocate();
  size_t stays = rest ? cutStreamUnit(d.frame, d.packet, size, rest) : 0;
  if (stays == 0) return false;
  DataUnit& second = *data_.take();
  second = DataUnit{};
  second.packet = std::move(rest);
  second.flow = d.flow;
  second.dsn = d.dsn + stays;
  second.pn = d.pn;
  second.firstSent = d.firstSent;
  second.slot = d.slot;
  second.subflow = d.subflow;
  second.delivery = d.delivery;
  second.moved = d.moved;
  second.frame = d.frame;
  d.frame &= static_cast<uint8_t>(~StreamFrame::kFin);
  for (DataUnit* each : {&d, &second})
    setCoded(*each);  // the old packet number stands for other bytes
  d.flow->sent.list_.insertAfter(d, second);
  ++d.flow->sent.unacked_;
  setUsed(used() + 1);
  second.state = UnitState::kLost;
  ++second.refs;
  ++queued_;
  ++repairChanges_;
  repairs_.insertAfter(d, second);
  if (lastMoved_ == &d) lastMoved_ = &second;
  return true;
}

void DataTracker::enqueue(DataUnit& unit) {
  unit.state = UnitState::kLost;
  ++unit.refs;
  ++queued_;
  ++repairChanges_;
  if (!unit.moved) return repairs_.pushBack(unit);
  if (lastMoved_) {
    repairs_.insertAfter(*lastMoved_, unit);
  } else {
    repairs_.pushFront(unit);
  }
  lastMoved_ = &unit;
}

void DataTracker::dequeue(DataUnit& unit) {
  if (lastMoved_ == &unit) lastMoved_ = Repairs::previous(unit);
  repairs_.erase(unit);
  --queued_;
  ++repairChanges_;
  release(UnitRef(&unit));
}

void DataTracker::release(UnitRef unit) {
  DataUnit& d = *unit.unit_;
  if (--d.refs > 0) return;
  if (!d.isDone()) finish(d, UnitState::kAbandoned);
  data_.give(&d);
}

}  // namespace braid
