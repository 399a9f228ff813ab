#include "tunnel/order/resequencer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tunnel/wire/frames.h"

namespace braid {

ResequencerOptions resequencerOptions(const QueueOptions& options) {
  // Every flow number that the wire allows. The peer's own bound limits how many are used.
  return {.holdTime = options.holdTime > 0s ? options.holdTime : kHoldTime,
          .holdBytes = options.holdBytes,
          .maxFlows = kDatagramFlow.value()};
}

Resequencer::Resequencer(const ResequencerOptions& options) : options_(options) {}

Resequencer::~Resequencer() = default;

void Resequencer::onPacket(FlowNumber slot, Dsn dsn, Packet packet, Time now) {
  Slot* s = slotOf(slot, now);
  if (!s) return count(Drop::kFlowTableFull);
  out_.begin(now);
  Dsn next = s->history.next();
  if (dsn > next) return hold(*s, dsn, std::move(packet), now);
  if (dsn < next) {
    if (s->history.delivered(dsn)) return count(Drop::kDuplicate);
    s->history.mark(dsn);
    return out_.addInOrder(std::move(packet), s->pace());
  }
  s->history.advance(next + 1);
  s->history.mark(dsn);
  out_.addInOrder(std::move(packet), s->pace());
  drain(*s);
}

void Resequencer::skip(FlowNumber slot, Dsn first, uint64_t count, Time now) {
  Slot* s = slotOf(slot, now);
  if (!s) return;
  out_.begin(now);
  Dsn end = first + count;
  if (first <= s->history.next()) {
    if (end > s->history.next()) releaseBelow(*s, end);
    return drain(*s);
  }
  // Behind a hole: marks, which are bounded and timed like packets. Beyond the pages of the slot
  // there are no marks; there the hold time ends the wait.
  if (!s->reaches(first)) return;
  mark(*s, first, std::min(end, s->reach()), now);
  enforceBounds();
}

void Resequencer::onTimer(Time now) {
  out_.onTimer(now);
  out_.begin(now);
  while (waiting_.due(true, options_.patience) <= now) release(*waiting_.lists[true].front());
  while (waiting_.due(false, options_.holdTime) <= now) release(*waiting_.lists[false].front());
  enforceBounds();
}

Dsn Resequencer::next(FlowNumber slot) const {
  const TableEntry* entry = entryOf(slot);
  if (!entry) return Dsn{};
  return entry->slot ? entry->slot->history.next() : entry->next;
}

size_t Resequencer::footprint() const {
  return tablePages_ * sizeof(TablePage) + slots_ * sizeof(Slot) + heldPool_.footprint() +
         pagePool_.footprint() + windowPool_.footprint() + marksPool_.footprint();
}

// The most that one entry takes: a held packet that is alone in its page and slot, and later, from
// other pools, marks. At the default holdBytes these are more entries than packets of 2 KB fit.
size_t Resequencer::maxEntries() const {
  constexpr size_t kEntryBytes = sizeof(Held) + sizeof(Page) + sizeof(Window) + sizeof(Marks);
  return std::max<size_t>(options_.holdBytes / kEntryBytes, 1);
}

size_t Resequencer::growth(FlowNumber slot) const {
  const TableEntry* entry = entryOf(slot);
  if (!entry) return sizeof(TablePage) + sizeof(Slot);
  return entry->slot ? 0 : sizeof(Slot);
}

void Resequencer::freeIdle(Time before) {
  for (std::unique_ptr<TablePage>& page : table_) {
    if (!page) continue;
    for (TableEntry& entry : *page) {
      if (!entry.slot || entry.slot->isHolding() || entry.slot->used > before) continue;
      entry.next = entry.slot->history.next();
      entry.slot.reset();
      --slots_;
    }
  }
  if (entries_ > 0 || lastHeld_ > before) return;
  heldPool_.shrink();
  pagePool_.shrink();
  windowPool_.shrink();
  marksPool_.shrink();
}

void Resequencer::releaseAll() {
  while (!waiting_.empty()) releaseOldest();
  out_.flush();
  freeIdle(Time::max());
}

// nullptr when the slot's page does not exist.
const Resequencer::TableEntry* Resequencer::entryOf(FlowNumber slot) const {
  size_t page = slot.value() / kTablePage;
  return page < table_.size() && table_[page] ? &(*table_[page])[slot.value() % kTablePage]
                                              : nullptr;
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
  TableEntry& entry = (*page)[at % kTablePage];
  if (!entry.slot) {
    entry.slot = std::make_unique<Slot>();
    entry.slot->history.restart(entry.next);
    entry.slot->isDatagram = slot >= kOrderedDatagramFlow;
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
  if (find(slot, dsn)) return count(Drop::kDuplicate);
  unmark(slot, dsn, dsn + 1);  // it has arrived although it was skipped
  if (!slot.window) slot.window = windowPool_.take();
  Page*& page = slot.window->page(dsn);
  if (!page) page = pagePool_.take();
  Held* held = heldPool_.take();
  page->present |= uint64_t{1} << bitOf(dsn);
  page->packets[bitOf(dsn)] = held;
  held->dsn = dsn;
  held->slot = &slot;
  wait(*held, now);
  ++slot.held;
  ++entries_;
  ++held_;
  heldBytes_ += packet.size();
  heldFootprint_ += packet.footprint();
  held->packet = std::move(packet);
  if (dsn == slot.history.next()) drain(slot);
  enforceBounds();
}

// Appends to the list, which stays sorted by time.
void Resequencer::wait(Held& held, Time now) {
  lastHeld_ = now;
  const Held* newest = waiting_.newest(held.slot->isDatagram);
  held.arrived = newest ? std::max(now, newest->arrived) : now;
  waiting_.lists[held.slot->isDatagram].pushBack(held);
}

// Does not mark DSNs that are held as packets or were marked before.
void Resequencer::mark(Slot& slot, Dsn first, Dsn end, Time now) {
  bool isNew = !slot.marks;
  if (isNew) slot.marks = marksPool_.take();
  Marks& marks = *slot.marks;
  size_t before = marks.count;
  marks.bits.forEachWord(first.value(), end - first,
                         [&](uint64_t at, uint64_t& word, uint64_t mask) {
                           const Page* page = slot.page(Dsn(at));
                           uint64_t fresh = mask & ~word & ~(page ? page->present : 0);
                           word |= fresh;
                           marks.count += static_cast<size_t>(std::popcount(fresh));
                         });
  if (marks.count == before) {
    if (isNew) marksPool_.give(std::exchange(slot.marks, nullptr));
    return;
  }
  if (isNew) {
    marks.entry = heldPool_.take();
    marks.entry->slot = &slot;
    ++entries_;
  } else {
    waiting_.lists[slot.isDatagram].erase(*marks.entry);
  }
  wait(*marks.entry, now);
}

// Removes marks: the packets have arrived, or the hole is beyond them.
void Resequencer::unmark(Slot& slot, Dsn first, Dsn end) {
  if (!slot.marks || first >= end) return;
  Marks& marks = *slot.marks;
  marks.bits.forEachWord(first.value(), std::min<uint64_t>(end - first, kSpan),
                         [&](uint64_t, uint64_t& word, uint64_t mask) {
                           marks.count -= static_cast<size_t>(std::popcount(word & mask));
                           word &= ~mask;
                         });
  if (marks.count > 0) return;
  waiting_.lists[slot.isDatagram].erase(*marks.entry);
  heldPool_.give(std::exchange(marks.entry, nullptr));
  --entries_;
  marksPool_.give(std::exchange(slot.marks, nullptr));
}

// Moves the hole over the marks that begin at it. False when the hole has no mark.
bool Resequencer::passMarks(Slot& slot) {
  Dsn next = slot.history.next();
  size_t run = slot.marks ? slot.marks->bits.runAt(next.value()) : 0;
  if (run == 0) return false;
  unmark(slot, next, next + run);
  slot.history.advance(next + run);
  return true;
}

// The highest marked DSN; there must be one.
Dsn Resequencer::lastMark(const Slot& slot) {
  Dsn page = slot.reach() - kPageSize;
  while (slot.marks->bits.word(page.value()) == 0) page = page - kPageSize;
  return page + (kPageSize - 1 -
                 static_cast<uint64_t>(std::countl_zero(slot.marks->bits.word(page.value()))));
}

Resequencer::Held* Resequencer::find(Slot& slot, Dsn dsn) {
  if (slot.held == 0 || !slot.reaches(dsn)) return nullptr;
  Page* page = slot.page(dsn);
  bool there = page && (page->present >> bitOf(dsn) & 1);
  return there ? page->packets[bitOf(dsn)] : nullptr;
}

// Removes the entry from its page and from the list.
Packet Resequencer::take(Held* held) {
  Slot& slot = *held->slot;
  Page*& page = slot.window->page(held->dsn);
  page->present &= ~(uint64_t{1} << bitOf(held->dsn));
  if (page->present == 0) {
    pagePool_.give(page);
    page = nullptr;
  }
  waiting_.lists[slot.isDatagram].erase(*held);
  if (--slot.held == 0) windowPool_.give(std::exchange(slot.window, nullptr));
  --entries_;
  Packet packet = std::move(held->packet);
  heldPool_.give(held);
  --held_;
  heldBytes_ -= packet.size();
  heldFootprint_ -= packet.footprint();
  return packet;
}

// Delivers the packets that are in order now.
void Resequencer::drain(Slot& slot) {
  do {
    while (Held* held = find(slot, slot.history.next())) {
      Dsn dsn = held->dsn;
      Packet packet = take(held);
      slot.history.advance(dsn + 1);
      slot.history.mark(dsn);
      out_.addReleased(std::move(packet), slot.pace());
    }
  } while (passMarks(slot));
}

// Delivers the held packets below `end`, in order, and gives up the missing ones.
void Resequencer::releaseBelow(Slot& slot, Dsn end) {
  Dsn dsn = slot.history.next();
  Dsn reach = slot.reach();
  unmark(slot, dsn, std::min(end, reach));
  slot.history.advance(end);
  for (; slot.held > 0 && dsn < std::min(end, reach); dsn = firstOf(pageOf(dsn) + 1)) {
    while (Page* page = slot.page(dsn)) {
      Dsn first = firstOf(pageOf(dsn)) + static_cast<uint64_t>(std::countr_zero(page->present));
      if (first >= end) break;
      Packet packet = take(page->packets[bitOf(first)]);
      slot.history.mark(first);
      out_.addReleased(std::move(packet), slot.pace());
    }
  }
}

// Releases this entry and everything of its slot before it.
void Resequencer::release(const Held& oldest) {
  Slot& slot = *oldest.slot;
  bool isMarks = slot.marks && slot.marks->entry == &oldest;
  releaseBelow(slot, (isMarks ? lastMark(slot) : oldest.dsn) + 1);
  drain(slot);
}

void Resequencer::releaseOldest() {
  out_.flush();
  if (waiting_.empty()) return;
  uint64_t before = out_.size();
  release(*waiting_.oldest());
  count(Drop::kHoldOverflow, out_.size() - before);
  out_.flush();
}

void Resequencer::enforceBounds() {
  while (!waiting_.empty() && (heldFootprint_ > options_.holdBytes || entries_ > maxEntries()))
    releaseOldest();
}

}  // namespace braid
