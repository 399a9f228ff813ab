#include "tunnel/queue/drr.h"

#include <algorithm>
#include <utility>

#include "tunnel/queue/flow.h"

namespace braid {

void DrrScheduler::onData(DrrEntry& entry, size_t bytes) {
  entry.waiting_ += bytes;
  bytes_ += bytes;
  enter(entry);
  if (settled_ == &entry && !entry.unit_) settled_ = nullptr;
}

void DrrScheduler::leave(DrrEntry& entry) {
  onDropped(entry, entry.waiting_);
  claims_ -= entry.claims_;
  entry.claims_ = false;
  entry.unit_ = nullptr;
  if (!entry.isScheduled()) return;
  if (auto held = std::find(held_.begin(), held_.end(), &entry); held != held_.end()) {
    held_.erase(held);
  } else {
    listOf(entry).erase(entry);
  }
  if (settled_ == &entry) settled_ = nullptr;
  entry.place_ = DrrEntry::Place::kNone;
  --scheduled_;
}

void DrrScheduler::claim(DrrEntry& entry) {
  claims_ += !entry.claims_;
  entry.claims_ = true;
  enter(entry);
}

// Until the flow has sent what waits, each flow that takes turns with it sends as much, or all that
// it has. Sparse flows are served first.
size_t DrrScheduler::drain(const DrrEntry& entry) const {
  return entry.isSparse() ? entry.waiting_ : std::min(scheduled_ * entry.waiting_, bytes_);
}

void DrrScheduler::enter(DrrEntry& entry) {
  if (entry.isScheduled()) return;
  entry.deficit_ = kQuantum;
  entry.place_ = DrrEntry::Place::kNew;
  ++scheduled_;
  new_.pushBack(entry);
}

// RFC 8290 section 4.2. False when no flow has anything to send.
bool DrrScheduler::settle(Time now) {
  if (settled_) return true;
  while (true) {
    List& list = next();
    if (list.empty()) return false;
    DrrEntry& entry = *list.front();
    if (entry.deficit_ <= 0) {
      entry.deficit_ += kQuantum;
      list.popFront();
      old_.pushBack(entry);
      entry.place_ = DrrEntry::Place::kOld;
      continue;
    }
    entry.unit_ = entry.flow_.lane().prepare(entry.flow_, now);
    if (entry.unit_ || entry.claims_) {
      settled_ = &entry;
      return true;
    }
    list.popFront();
    // A new flow that is empty now becomes the last old one. Otherwise it could come back as a new
    // flow before the others were served.
    if (std::exchange(entry.place_, DrrEntry::Place::kNone) == DrrEntry::Place::kNew) {
      entry.place_ = DrrEntry::Place::kOld;
      old_.pushBack(entry);
    } else {
      --scheduled_;
    }
  }
}

void DrrScheduler::charge(DrrEntry& entry, size_t bytes) {
  entry.deficit_ -= static_cast<int64_t>(bytes);
  ahead_ = entry.isSparse() ? ahead_ + static_cast<int64_t>(bytes) : 0;
}

Candidate DrrCursor::offer(Time now) {
  bool isHeld = shown_ < fair_->held_.size();
  if (!isHeld && !fair_->settle(now)) return {};
  DrrEntry& entry = isHeld ? *fair_->held_[shown_] : *fair_->settled_;
  return {&entry.flow_, entry.unit_};
}

// A held flow returns to the head of its list. If the settled flow is there, that one stays first,
// with the rest of its turn.
Packet DrrCursor::take() {
  DrrEntry* entry = nullptr;
  if (shown_ < fair_->held_.size()) {
    entry = fair_->held_[shown_];
    fair_->held_.erase(fair_->held_.begin() + static_cast<ptrdiff_t>(shown_));
    DrrScheduler::List& list = fair_->listOf(*entry);
    if (!list.empty() && list.front() == fair_->settled_) {
      list.insertAfter(*list.front(), *entry);
    } else {
      list.pushFront(*entry);
    }
  } else {
    if (!fair_->settled_ || !fair_->settled_->unit_) return {};
    entry = std::exchange(fair_->settled_, nullptr);
  }
  entry->unit_ = nullptr;
  Packet unit = entry->flow_.lane().handOut(entry->flow_);
  entry->waiting_ -= unit.size();
  fair_->bytes_ -= unit.size();
  fair_->charge(*entry, unit.size());
  return unit;
}

bool DrrCursor::pass(Time now) {
  if (shown_ == fair_->held_.size()) {
    Candidate next = offer(now);
    if (!next || next.isClaim() || fair_->held_.size() == DrrScheduler::kMaxHeld) return false;
    DrrEntry* entry = std::exchange(fair_->settled_, nullptr);
    fair_->listOf(*entry).popFront();
    fair_->held_.push_back(entry);
    if (!entry->isSparse()) fair_->ahead_ = 0;  // an old flow had its turn
  }
  ++shown_;
  return true;
}

bool DrrCursor::deferClaim() {
  DrrEntry* entry = fair_->settled_;
  if (!entry || entry->unit_) return false;
  bool isNew = entry->place_ == DrrEntry::Place::kNew;
  if (isNew) fair_->new_.popFront();
  if (fair_->new_.empty()) {
    if (isNew) fair_->new_.pushFront(*entry);
    return false;
  }
  if (isNew) {
    fair_->old_.pushFront(*entry);
    entry->place_ = DrrEntry::Place::kOld;
  }
  fair_->settled_ = nullptr;
  fair_->ahead_ = 0;  // an old flow had its turn
  return true;
}

void DrrCursor::endClaim(size_t bytes, bool again) {
  DrrEntry* entry = fair_->settled_;
  if (!entry || entry->unit_) return;
  fair_->settled_ = nullptr;
  fair_->charge(*entry, bytes);
  entry->claims_ = again;
  fair_->claims_ -= !again;
}

}  // namespace braid
