#include "tunnel/lane/data_ledger.h"

#include "tunnel/lane/flow_queue.h"

namespace braid {

namespace {
constexpr size_t kSlab = 256;
/// Announcements kept; beyond it the receiver's hold time ends the wait.
constexpr size_t kMaxSkips = 256;

Drop lateCause(const Datum& datum) {
  return datum.reliable ? Drop::kExpired : Drop::kLostDatagram;
}
}  // namespace

Datum* DataLedger::create(Flow& flow, uint16_t slot, uint64_t dsn, bool reliable, Packet packet, Time now) {
  if (free_.empty()) {
    slabs_.push_back(std::make_unique<Datum[]>(kSlab));
    for (size_t i = 0; i < kSlab; ++i) free_.push_back(&slabs_.back()[i]);
  }
  Datum* d = free_.back();
  free_.pop_back();
  *d = Datum{};
  d->packet = std::move(packet);
  d->flow = &flow;
  d->dsn = dsn;
  d->firstSent = now;
  d->slot = slot;
  d->reliable = reliable;
  d->older = flow.newestSent;
  (flow.newestSent ? flow.newestSent->newer : flow.oldestSent) = d;
  flow.newestSent = d;
  ++flow.unacked;
  ++live_;
  return d;
}

void DataLedger::onSent(Datum* datum, uint8_t subflow, uint64_t pn) {
  datum->subflow = subflow;
  datum->pn = pn;
  datum->moved = false;
  ++datum->refs;
  ++datum->copies;
  dequeue(datum);
}

void DataLedger::onCopied(Datum* datum, Time answerDue) {
  datum->answerDue = answerDue;
  datum->copied = true;
  ++datum->refs;
  ++datum->copies;
}

void DataLedger::onDelivered(Datum* datum, bool counted) {
  if (counted) --datum->copies;
  if (!datum->done) finish(datum, true);
}

void DataLedger::onLost(Datum* datum, Time now, bool copy) {
  --datum->copies;
  if (datum->done || datum->queued || (datum->copies > 0 && (copy || !datum->copied))) return;
  if (!datum->reliable && datum->copies > 0) return;
  if (!datum->reliable) return giveUp(datum, Drop::kLostDatagram);
  if (isTooLate(*datum, now)) return giveUp(datum, Drop::kExpired);
  enqueue(datum);
}

void DataLedger::onMoved(Datum* datum, Time now, bool copy) {
  --datum->copies;
  datum->moved |= !copy;
  if (datum->done || datum->queued || (datum->copies > 0 && (copy || !datum->copied))) return;
  if (isTooLate(*datum, now)) return giveUp(datum, lateCause(*datum));
  enqueue(datum);
}

Datum* DataLedger::nextRepair(Time now) {
  while (head_ && isTooLate(*head_, now)) giveUp(head_, lateCause(*head_));
  return head_;
}

void DataLedger::giveUp(Datum* datum, Drop cause) {
  if (datum->done) return;
  ++drops_[static_cast<size_t>(cause)];
  if (datum->reliable) addSkip({datum->slot, datum->dsn, 1});
  if (observer_ && cause == Drop::kExpired) observer_->onPacketDropped(datum->packet.view());
  finish(datum, false);
}

void DataLedger::giveUpAll(Drop cause) {
  while (head_) giveUp(head_, cause);
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

void DataLedger::finish(Datum* datum, bool delivered) {
  datum->done = true;
  datum->delivered = delivered;
  datum->packet.reset();
  Flow& flow = *datum->flow;
  (datum->older ? datum->older->newer : flow.oldestSent) = datum->newer;
  (datum->newer ? datum->newer->older : flow.newestSent) = datum->older;
  datum->older = datum->newer = nullptr;
  --flow.unacked;
  datum->flow = nullptr;
  dequeue(datum);
}

void DataLedger::enqueue(Datum* datum) {
  datum->queued = true;
  ++datum->refs;
  ++queuedCount_;
  ++repairChanges_;
  datum->previous = tail_;
  datum->next = nullptr;
  (tail_ ? tail_->next : head_) = datum;
  tail_ = datum;
}

void DataLedger::dequeue(Datum* datum) {
  if (!datum->queued) return;
  (datum->previous ? datum->previous->next : head_) = datum->next;
  (datum->next ? datum->next->previous : tail_) = datum->previous;
  datum->previous = datum->next = nullptr;
  datum->queued = false;
  --queuedCount_;
  ++repairChanges_;
  forget(datum);
}

void DataLedger::forget(Datum* datum) {
  if (--datum->refs > 0) return;
  if (!datum->done) finish(datum, false);
  --live_;
  free_.push_back(datum);
}

}  // namespace braid
