#include "tunnel/queue/drr.h"

#include <algorithm>
#include <utility>

#include "tunnel/queue/flow.h"

namespace braid {

void DrrScheduler::onData(DrrEntry& seat, size_t bytes) {
  seat.waiting_ += bytes;
  bytes_ += bytes;
  sit(seat);
  if (settled_ == &seat && !seat.unit_) settled_ = nullptr;
}

void DrrScheduler::leave(DrrEntry& seat) {
  onDropped(seat, seat.waiting_);
  claims_ -= seat.claims_;
  seat.claims_ = false;
  seat.unit_ = nullptr;
  if (!seat.isSeated()) return;
  if (auto held = std::find(held_.begin(), held_.end(), &seat); held != held_.end()) {
    held_.erase(held);
  } else {
    listOf(seat).erase(seat);
  }
  if (settled_ == &seat) settled_ = nullptr;
  seat.place_ = DrrEntry::Place::kNone;
  --seated_;
}

void DrrScheduler::claim(DrrEntry& seat) {
  claims_ += !seat.claims_;
  seat.claims_ = true;
  sit(seat);
}

// Until the flow has sent what waits, each flow that takes turns with it sends as much, or all that
// it has. Sparse flows are served first.
size_t DrrScheduler::drain(const DrrEntry& seat) const {
  return seat.isSparse() ? seat.waiting_ : std::min(seated_ * seat.waiting_, bytes_);
}

void DrrScheduler::sit(DrrEntry& seat) {
  if (seat.isSeated()) return;
  seat.deficit_ = kQuantum;
  seat.place_ = DrrEntry::Place::kNew;
  ++seated_;
  new_.pushBack(seat);
}

// RFC 8290 section 4.2. False when no flow has anything to send.
bool DrrScheduler::settle(Time now) {
  if (settled_) return true;
  while (true) {
    List& list = next();
    if (list.empty()) return false;
    DrrEntry& seat = *list.front();
    if (seat.deficit_ <= 0) {
      seat.deficit_ += kQuantum;
      list.popFront();
      old_.pushBack(seat);
      seat.place_ = DrrEntry::Place::kOld;
      continue;
    }
    seat.unit_ = seat.flow_.lane().prepare(seat.flow_, now);
    if (seat.unit_ || seat.claims_) {
      settled_ = &seat;
      return true;
    }
    list.popFront();
    // A new flow that is empty now becomes the last old one. Otherwise it could come back as a new
    // flow before the others were served.
    if (std::exchange(seat.place_, DrrEntry::Place::kNone) == DrrEntry::Place::kNew) {
      seat.place_ = DrrEntry::Place::kOld;
      old_.pushBack(seat);
    } else {
      --seated_;
    }
  }
}

void DrrScheduler::charge(DrrEntry& seat, size_t bytes) {
  seat.deficit_ -= static_cast<int64_t>(bytes);
  ahead_ = seat.isSparse() ? ahead_ + static_cast<int64_t>(bytes) : 0;
}

Candidate DrrCursor::offer(Time now) {
  bool isHeld = shown_ < fair_->held_.size();
  if (!isHeld && !fair_->settle(now)) return {};
  DrrEntry& seat = isHeld ? *fair_->held_[shown_] : *fair_->settled_;
  return {&seat.flow_, seat.unit_};
}

// A held flow returns to the head of its list. If the settled flow is there, that one stays first,
// with the rest of its turn.
Packet DrrCursor::take() {
  DrrEntry* seat = nullptr;
  if (shown_ < fair_->held_.size()) {
    seat = fair_->held_[shown_];
    fair_->held_.erase(fair_->held_.begin() + static_cast<ptrdiff_t>(shown_));
    DrrScheduler::List& list = fair_->listOf(*seat);
    if (!list.empty() && list.front() == fair_->settled_) {
      list.insertAfter(*list.front(), *seat);
    } else {
      list.pushFront(*seat);
    }
  } else {
    if (!fair_->settled_ || !fair_->settled_->unit_) return {};
    seat = std::exchange(fair_->settled_, nullptr);
  }
  seat->unit_ = nullptr;
  Packet unit = seat->flow_.lane().handOut(seat->flow_);
  seat->waiting_ -= unit.size();
  fair_->bytes_ -= unit.size();
  fair_->charge(*seat, unit.size());
  return unit;
}

bool DrrCursor::pass(Time now) {
  if (shown_ == fair_->held_.size()) {
    Candidate next = offer(now);
    if (!next || next.isClaim() || fair_->held_.size() == DrrScheduler::kMaxHeld) return false;
    DrrEntry* seat = std::exchange(fair_->settled_, nullptr);
    fair_->listOf(*seat).popFront();
    fair_->held_.push_back(seat);
    if (!seat->isSparse()) fair_->ahead_ = 0;  // an old flow had its turn
  }
  ++shown_;
  return true;
}

bool DrrCursor::deferClaim() {
  DrrEntry* seat = fair_->settled_;
  if (!seat || seat->unit_) return false;
  bool isNew = seat->place_ == DrrEntry::Place::kNew;
  if (isNew) fair_->new_.popFront();
  if (fair_->new_.empty()) {
    if (isNew) fair_->new_.pushFront(*seat);
    return false;
  }
  if (isNew) {
    fair_->old_.pushFront(*seat);
    seat->place_ = DrrEntry::Place::kOld;
  }
  fair_->settled_ = nullptr;
  fair_->ahead_ = 0;  // an old flow had its turn
  return true;
}

void DrrCursor::endClaim(size_t bytes, bool again) {
  DrrEntry* seat = fair_->settled_;
  if (!seat || seat->unit_) return;
  fair_->settled_ = nullptr;
  fair_->charge(*seat, bytes);
  seat->claims_ = again;
  fair_->claims_ -= !again;
}

}  // namespace braid
