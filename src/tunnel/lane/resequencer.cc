#include "tunnel/lane/resequencer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tunnel/wire/frames.h"

namespace braid {

ResequencerOptions resequencerOptions(const LaneOptions& options) {
  // Every flow number that the wire allows: the peer's own bound says how many there are.
  return {.holdTime = options.holdTime, .holdBytes = options.holdBytes, .maxFlows = kDatagramFlow.value()};
}

Resequencer::Resequencer(const ResequencerOptions& options) : options_(options) {}

Resequencer::~Resequencer() = default;

void Resequencer::onPacket(FlowNumber slot, Dsn dsn, Packet packet, Time now) {
  Slot* s = slotOf(slot, now);
  if (!s) return count(Drop::kFlowTableFull);
  Dsn next = s->history.next();
  if (dsn > next) return hold(*s, dsn, std::move(packet), now);
  if (dsn < next) {
    if (s->history.delivered(dsn)) return count(Drop::kDuplicate);
    s->history.mark(dsn);
    return deliver(std::move(packet));
  }
  s->history.advance(next + 1);
  s->history.mark(dsn);
  deliver(std::move(packet));
  drain(*s);
}

void Resequencer::skip(FlowNumber slot, Dsn first, uint64_t count, Time now) {
  Slot* s = slotOf(slot, now);
  if (!s) return;
  Dsn end = first + count;
  for (Dsn dsn = first; dsn < end; ++dsn) {
    if (dsn <= s->history.next()) {
      if (end > s->history.next()) releaseBelow(*s, end);
      return drain(*s);
    }
    // Behind a hole: a mark, bounded and timed like a packet. Out of reach, the hold time ends the wait.
    if (!s->reaches(dsn)) return;
    if (!find(*s, dsn)) hold(*s, dsn, Packet(), now);
  }
}

void Resequencer::onTimer(Time now) {
  while (nextDeadline() <= now) releaseOldest();
  keepBounds();
}

bool Resequencer::poll(Packet& out) {
  if (out_.empty()) return false;
  out = std::move(out_.front());
  out_.popFront();
  return true;
}

Dsn Resequencer::next(FlowNumber slot) const {
  const Entry* entry = entryOf(slot);
  if (!entry) return Dsn{};
  return entry->slot ? entry->slot->history.next() : entry->next;
}

size_t Resequencer::footprint() const {
  return tablePages_ * sizeof(TablePage) + slots_ * sizeof(Slot) + heldStock_.footprint() +
         pageStock_.footprint() + windowStock_.footprint();
}

size_t Resequencer::growth(FlowNumber slot) const {
  const Entry* entry = entryOf(slot);
  if (!entry) return sizeof(TablePage) + sizeof(Slot);
  return entry->slot ? 0 : sizeof(Slot);
}

void Resequencer::forget(Time before) {
  for (std::unique_ptr<TablePage>& page : table_) {
    if (!page) continue;
    for (Entry& entry : *page) {
      if (!entry.slot || entry.slot->held > 0 || entry.slot->used > before) continue;
      entry.next = entry.slot->history.next();
      entry.slot.reset();
      --slots_;
    }
  }
  if (entries_ > 0 || lastHeld_ > before) return;
  heldStock_.shrink();
  pageStock_.shrink();
  windowStock_.shrink();
}

void Resequencer::clear() {
  while (!waiting_.empty()) relieve();
  forget(Time::max());
}

// nullptr when there is no page for it.
const Resequencer::Entry* Resequencer::entryOf(FlowNumber slot) const {
  size_t page = slot.value() / kTablePage;
  return page < table_.size() && table_[page] ? &(*table_[page])[slot.value() % kTablePage] : nullptr;
}

Resequencer::Slot* Resequencer::slotOf(FlowNumber slot, Time now) {
  size_t at = slot.value();
  if (at >= options_.maxFlows) return nullptr;
  if (at / kTablePage >= table_.size()) table_.resize(at / kTablePage + 1);
  std::unique_ptr<TablePage>& page = table_[at / kTablePage];
  if (!page) {
    page = std::make_unique<TablePage>();
    ++tablePages_;
  }
  Entry& entry = (*page)[at % kTablePage];
  if (!entry.slot) {
    entry.slot = std::make_unique<Slot>();
    entry.slot->history.restart(entry.next);
    ++slots_;
  }
  entry.slot->used = now;
  return entry.slot.get();
}

void Resequencer::hold(Slot& slot, Dsn dsn, Packet packet, Time now) {
  if (!slot.reaches(dsn)) {
    uint64_t before = out_.size();
    releaseBelow(slot, firstOf(pageOf(dsn) - kPages + 1));
    drain(slot);
    count(Drop::kHoldOverflow, out_.size() - before);
  }
  Held* held = find(slot, dsn);
  if (held && (held->packet || !packet)) return count(Drop::kDuplicate);
  if (!held) {
    if (!slot.window) slot.window = windowStock_.take();
    Page*& page = slot.window->page(dsn);
    if (!page) page = pageStock_.take();
    held = heldStock_.take();
    page->present |= uint64_t{1} << placeOf(dsn);
    page->entries[placeOf(dsn)] = held;
    held->dsn = dsn;
    held->slot = &slot;
    lastHeld_ = now;
    held->arrived = waiting_.empty() ? now : std::max(now, waiting_.back()->arrived);
    waiting_.pushBack(*held);
    ++slot.held;
    ++entries_;
  }
  if (packet) {
    ++held_;
    heldBytes_ += packet.size();
    heldFootprint_ += packet.footprint();
    held->packet = std::move(packet);
  }
  if (dsn == slot.history.next()) drain(slot);
  keepBounds();
}

Resequencer::Held* Resequencer::find(Slot& slot, Dsn dsn) {
  if (slot.held == 0 || !slot.reaches(dsn)) return nullptr;
  Page* page = slot.page(dsn);
  bool there = page && (page->present >> placeOf(dsn) & 1);
  return there ? page->entries[placeOf(dsn)] : nullptr;
}

// Out of its page and of the list; empty for a mark.
Packet Resequencer::take(Held* held) {
  Slot& slot = *held->slot;
  Page*& page = slot.window->page(held->dsn);
  page->present &= ~(uint64_t{1} << placeOf(held->dsn));
  if (page->present == 0) {
    pageStock_.give(page);
    page = nullptr;
  }
  waiting_.erase(*held);
  if (--slot.held == 0) windowStock_.give(std::exchange(slot.window, nullptr));
  --entries_;
  Packet packet = std::move(held->packet);
  heldStock_.give(held);
  if (packet) {
    --held_;
    heldBytes_ -= packet.size();
    heldFootprint_ -= packet.footprint();
  }
  return packet;
}

// Delivers what is in order now.
void Resequencer::drain(Slot& slot) {
  while (Held* held = find(slot, slot.history.next())) {
    Dsn dsn = held->dsn;
    Packet packet = take(held);
    slot.history.advance(dsn + 1);
    if (!packet) continue;
    slot.history.mark(dsn);
    deliver(std::move(packet));
  }
}

// Delivers what is there below `end`, in order, and gives up the rest.
void Resequencer::releaseBelow(Slot& slot, Dsn end) {
  Dsn dsn = slot.history.next();
  Dsn reach = firstOf(pageOf(dsn) + kPages);
  slot.history.advance(end);
  for (; slot.held > 0 && dsn < std::min(end, reach); dsn = firstOf(pageOf(dsn) + 1)) {
    while (Page* page = slot.page(dsn)) {
      Dsn first = firstOf(pageOf(dsn)) + static_cast<uint64_t>(std::countr_zero(page->present));
      if (first >= end) break;
      Packet packet = take(page->entries[placeOf(first)]);
      if (!packet) continue;
      slot.history.mark(first);
      deliver(std::move(packet));
    }
  }
}

void Resequencer::releaseOldest() {
  const Held& oldest = *waiting_.front();
  Slot& slot = *oldest.slot;
  releaseBelow(slot, oldest.dsn + 1);
  drain(slot);
}

void Resequencer::relieve() {
  if (waiting_.empty()) return;
  uint64_t before = out_.size();
  releaseOldest();
  count(Drop::kHoldOverflow, out_.size() - before);
}

void Resequencer::keepBounds() {
  uint64_t before = out_.size();
  while (!waiting_.empty() && (heldFootprint_ > options_.holdBytes || entries_ > maxHeld())) releaseOldest();
  count(Drop::kHoldOverflow, out_.size() - before);
}

void Resequencer::deliver(Packet packet) {
  out_.pushBack(std::move(packet));
}

}  // namespace braid
