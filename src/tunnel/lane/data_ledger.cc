#include "tunnel/lane/data_ledger.h"

#include <utility>

#include "tunnel/lane/flow.h"
#include "tunnel/lane/lane.h"

namespace braid {

namespace {
/// Announcements kept; beyond it the receiver's hold time ends the wait.
constexpr size_t kMaxSkips = 256;

Drop lateCause(const Datum& datum) {
  return datum.delivery == Delivery::kReliable ? Drop::kExpired : Drop::kLostDatagram;
}
}  // namespace

const Datum* DataLedger::create(Flow& flow, Packet packet, Time now) {
  Datum& d = *data_.take();
  d = Datum{};
  d.packet = std::move(packet);
  d.flow = &flow;
  bool isRange = flow.delivery() == Delivery::kStream;
  d.dsn = isRange ? Dsn(flow.unit.offset) : flow.sent.nextDsn_[static_cast<size_t>(flow.delivery())]++;
  d.frame = isRange ? flow.unit.frame : uint8_t{0};
  d.firstSent = now;
  d.slot = flow.slot();
  d.delivery = flow.delivery();
  flow.sent.list_.pushBack(d);
  ++flow.sent.unacked_;
  keep(kept() + 1);
  return &d;
}

void DataLedger::onSent(const Datum* datum, SubflowId subflow, PacketNumber pn) {
  Datum& d = own(datum);
  d.subflow = subflow;
  d.pn = pn;
  d.moved = false;
  ++d.refs;
  ++d.copies;
  dequeue(d);
}

void DataLedger::onCopied(const Datum* datum, Time answerDue) {
  Datum& d = own(datum);
  d.answerDue = answerDue;
  d.copied = true;
  ++d.refs;
  ++d.copies;
}

void DataLedger::onCoded(const Datum* datum, Time answerDue) {
  Datum& d = own(datum);
  d.answerDue = answerDue;
  d.coded = true;
}

void DataLedger::onDelivered(const Datum* datum, bool counted) {
  Datum& d = own(datum);
  if (counted) --d.copies;
  if (!d.done) finish(d, true);
}

void DataLedger::onRecovered(const Datum* datum) {
  if (!datum->done) finish(own(datum), true);
}

void DataLedger::onLost(const Datum* datum, Time now, bool copy) {
  Datum& d = own(datum);
  --d.copies;
  if (d.done || d.queued || (d.copies > 0 && (copy || !d.copied))) return;
  bool timely = d.delivery == Delivery::kTimely;
  if (timely && d.copies > 0) return;
  if (timely || isTooLate(d, now)) return giveUp(datum, lateCause(d));
  enqueue(d);
}

void DataLedger::onMoved(const Datum* datum, Time now, bool copy) {
  Datum& d = own(datum);
  --d.copies;
  d.moved |= !copy;
  if (d.done || d.queued || (d.copies > 0 && (copy || !d.copied))) return;
  if (isTooLate(d, now)) return giveUp(datum, lateCause(d));
  enqueue(d);
}

const Datum* DataLedger::nextRepair(Time now) {
  while (const Datum* first = repairs_.front()) {
    if (!isTooLate(*first, now)) return first;
    giveUp(first, lateCause(*first));
  }
  return nullptr;
}

// isTooLate() begins right after the time that the data is worth sending.
Time DataLedger::repairExpiresAt() const {
  const Datum* first = repairs_.front();
  if (!first || first->delivery == Delivery::kStream) return kNever;
  return first->firstSent + worth(first->delivery) + 1ns;
}

void DataLedger::giveUp(const Datum* datum, Drop cause) {
  if (datum->done) return;
  countDrop(drops_, cause);
  if (datum->delivery != Delivery::kTimely && datum->delivery != Delivery::kStream)
    addSkip({datum->slot, datum->dsn, 1});
  if (observer_ && cause == Drop::kExpired) observer_->onPacketDropped(datum->packet.view());
  finish(own(datum), false);
}

void DataLedger::giveUpAll(Drop cause) {
  while (!repairs_.empty()) giveUp(repairs_.front(), cause);
}

std::optional<SkipFrame> DataLedger::takeSkip() {
  if (skips_.empty()) return std::nullopt;
  SkipFrame skip = skips_.back();
  skips_.pop_back();
  return skip;
}

void DataLedger::addSkip(const SkipFrame& skip) {
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

const Datum* DataLedger::oldestOf(const Flow& flow) {
  return flow.sent.oldest();
}

void DataLedger::finish(Datum& datum, bool delivered) {
  datum.done = true;
  datum.delivered = delivered;
  datum.packet.reset();
  SentData& sent = datum.flow->sent;
  sent.list_.erase(datum);
  --sent.unacked_;
  keep(kept() - 1);
  Flow& flow = *std::exchange(datum.flow, nullptr);
  dequeue(datum);
  if (sent.unacked_ == 0 && flow.delivery() == Delivery::kStream) flow.lane().onSettled(flow);
}

// Datagrams that left with all of it still count for the first part; the second one is sent again in any case.
bool DataLedger::cut(const Datum* datum, size_t size, PacketPool& pool) {
  Datum& d = own(datum);
  if (d.frame == 0 || !d.queued || !hasRoom(1)) return false;
  Packet rest = pool.allocate();
  size_t stays = rest ? cutStreamUnit(d.frame, d.packet, size, rest) : 0;
  if (stays == 0) return false;
  Datum& second = *data_.take();
  second = Datum{};
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
  d.coded = second.coded = true;  // its old packet number stands for other bytes
  d.flow->sent.list_.insertAfter(d, second);
  ++d.flow->sent.unacked_;
  keep(kept() + 1);
  second.queued = true;
  ++second.refs;
  ++queued_;
  ++repairChanges_;
  repairs_.insertAfter(d, second);
  if (lastMoved_ == &d) lastMoved_ = &second;
  return true;
}

void DataLedger::enqueue(Datum& datum) {
  datum.queued = true;
  ++datum.refs;
  ++queued_;
  ++repairChanges_;
  if (!datum.moved) return repairs_.pushBack(datum);
  if (lastMoved_) {
    repairs_.insertAfter(*lastMoved_, datum);
  } else {
    repairs_.pushFront(datum);
  }
  lastMoved_ = &datum;
}

void DataLedger::dequeue(Datum& datum) {
  if (!datum.queued) return;
  if (lastMoved_ == &datum) lastMoved_ = Repairs::previous(datum);
  repairs_.erase(datum);
  datum.queued = false;
  --queued_;
  ++repairChanges_;
  forget(&datum);
}

void DataLedger::forget(const Datum* datum) {
  Datum& d = own(datum);
  if (--d.refs > 0) return;
  if (!d.done) finish(d, false);
  data_.give(&d);
}

}  // namespace braid
