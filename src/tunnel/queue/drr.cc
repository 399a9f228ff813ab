#include "tunnel/queue/drr.h"

#include <algorithm>
#include <utility>

#include "tunnel/queue/flow.h"

namespace braid {

void DrrScheduler::onData(DrrEntry& entry, size_t bytes) {
  entry.waiting_ += bytes;
  bytes_ += bytes;
  enter(entry);
  if (current_ == &entry && !entry.unit_) current_ = nullptr;
}

void DrrScheduler::remove(DrrEntry& entry) {
  onDropped(entry, entry.waiting_);
  turnRequests_ -= entry.wantsTurn_;
  entry.wantsTurn_ = false;
  entry.unit_ = nullptr;
  if (!entry.isScheduled()) return;
  if (auto skipped = std::find(skipped_.begin(), skipped_.end(), &entry);
      skipped != skipped_.end()) {
    skipped_.erase(skipped);
  } else {
    listOf(entry).erase(entry);
  }
  if (current_ == &entry) current_ = nullptr;
  entry.list_ = DrrEntry::ListId::kNone;
  --flows_;
}

void DrrScheduler::requestTurn(DrrEntry& entry) {
  turnRequests_ += !entry.wantsTurn_;
  entry.wantsTurn_ = true;
  enter(entry);
}

// Until the flow has sent what waits, each flow that takes turns with it sends as much, or all that
// it has. Sparse flows are served first.
size_t DrrScheduler::bytesUntilDrained(const DrrEntry& entry) const {
  return entry.isSparse() ? entry.waiting_ : std::min(flows_ * entry.waiting_, bytes_);
}

void DrrScheduler::enter(DrrEntry& entry) {
  if (entry.isScheduled()) return;
  entry.deficit_ = kQuantum;
  entry.list_ = DrrEntry::ListId::kNew;
  ++flows_;
  new_.pushBack(entry);
}

// RFC 8290 section 4.2. False when no flow has anything to send.
bool DrrScheduler::selectCurrent(Time now) {
  if (current_) return true;
  while (true) {
    List& list = next();
    if (list.empty()) return false;
    DrrEntry& entry = *list.front();
    if (entry.deficit_ <= 0) {
      entry.deficit_ += kQuantum;
      list.popFront();
      old_.pushBack(entry);
      entry.list_ = DrrEntry::ListId::kOld;
      continue;
    }
    entry.unit_ = entry.flow_.lane().prepare(entry.flow_, now);
    if (entry.unit_ || entry.wantsTurn_) {
      current_ = &entry;
      return true;
    }
    list.popFront();
    // A new flow that is empty now becomes the last old one. Otherwise it could come back as a new
    // flow before the others were served.
    if (std::exchange(entry.list_, DrrEntry::ListId::kNone) == DrrEntry::ListId::kNew) {
      entry.list_ = DrrEntry::ListId::kOld;
      old_.pushBack(entry);
    } else {
      --flows_;
    }
  }
}

void DrrScheduler::charge(DrrEntry& entry, size_t bytes) {
  entry.deficit_ -= static_cast<int64_t>(bytes);
  sparseRun_ = entry.isSparse() ? sparseRun_ + static_cast<int64_t>(bytes) : 0;
}

Candidate DrrCursor::peek(Time now) {
  bool isSkipped = index_ < drr_->skipped_.size();
  if (!isSkipped && !drr_->selectCurrent(now)) return {};
  DrrEntry& entry = isSkipped ? *drr_->skipped_[index_] : *drr_->current_;
  return {&entry.flow_, entry.unit_};
}

// A skipped flow returns to the head of its list. If the current flow is there, that one stays
// first, with the rest of its turn.
Packet DrrCursor::take() {
  DrrEntry* entry = nullptr;
  if (index_ < drr_->skipped_.size()) {
    entry = drr_->skipped_[index_];
    drr_->skipped_.erase(drr_->skipped_.begin() + static_cast<ptrdiff_t>(index_));
    DrrScheduler::List& list = drr_->listOf(*entry);
    if (!list.empty() && list.front() == drr_->current_) {
      list.insertAfter(*list.front(), *entry);
    } else {
      list.pushFront(*entry);
    }
  } else {
    if (!drr_->current_ || !drr_->current_->unit_) return {};
    entry = std::exchange(drr_->current_, nullptr);
  }
  entry->unit_ = nullptr;
  Packet unit = entry->flow_.lane().handOut(entry->flow_);
  entry->waiting_ -= unit.size();
  drr_->bytes_ -= unit.size();
  drr_->charge(*entry, unit.size());
  return unit;
}

bool DrrCursor::skip(Time now) {
  if (index_ == drr_->skipped_.size()) {
    Candidate next = peek(now);
    if (!next || next.isBareTurn() || drr_->skipped_.size() == DrrScheduler::kMaxSkipped)
      return false;
    DrrEntry* entry = std::exchange(drr_->current_, nullptr);
    drr_->listOf(*entry).popFront();
    drr_->skipped_.push_back(entry);
    if (!entry->isSparse()) drr_->sparseRun_ = 0;  // an old flow had its turn
  }
  ++index_;
  return true;
}

bool DrrCursor::deferTurn() {
  DrrEntry* entry = drr_->current_;
  if (!entry || entry->unit_) return false;
  bool isNew = entry->list_ == DrrEntry::ListId::kNew;
  if (isNew) drr_->new_.popFront();
  if (drr_->new_.empty()) {
    if (isNew) drr_->new_.pushFront(*entry);
    return false;
  }
  if (isNew) {
    drr_->old_.pushFront(*entry);
    entry->list_ = DrrEntry::ListId::kOld;
  }
  drr_->current_ = nullptr;
  drr_->sparseRun_ = 0;  // an old flow had its turn
  return true;
}

void DrrCursor::endTurn(size_t bytes, bool again) {
  DrrEntry* entry = drr_->current_;
  if (!entry || entry->unit_) return;
  drr_->current_ = nullptr;
  drr_->charge(*entry, bytes);
  entry->wantsTurn_ = again;
  drr_->turnRequests_ -= !again;
}

}  // namespace braid
