#include "tunnel/lane/fair_round.h"

#include <algorithm>
#include <utility>

#include "tunnel/lane/flow.h"
#include "tunnel/lane/lane.h"

namespace braid {

void FairRound::onData(RoundSeat& seat, size_t bytes) {
  seat.waiting_ += bytes;
  bytes_ += bytes;
  sit(seat);
  if (settled_ == &seat && !seat.unit_) settled_ = nullptr;
}

void FairRound::leave(RoundSeat& seat) {
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
  seat.place_ = RoundSeat::Place::kNone;
  --seated_;
}

void FairRound::claim(RoundSeat& seat) {
  claims_ += !seat.claims_;
  seat.claims_ = true;
  sit(seat);
}

// Each flow that takes turns sends as much as this one meanwhile, or what it has. Sparse ones go first.
size_t FairRound::drain(const RoundSeat& seat) const {
  return seat.isSparse() ? seat.waiting_ : std::min(seated_ * seat.waiting_, bytes_);
}

void FairRound::sit(RoundSeat& seat) {
  if (seat.isSeated()) return;
  seat.deficit_ = kQuantum;
  seat.place_ = RoundSeat::Place::kNew;
  ++seated_;
  new_.pushBack(seat);
}

// RFC 8290 section 4.2. False when nobody has anything to send.
bool FairRound::settle(Time now) {
  if (settled_) return true;
  while (true) {
    List& list = next();
    if (list.empty()) return false;
    RoundSeat& seat = *list.front();
    if (seat.deficit_ <= 0) {
      seat.deficit_ += kQuantum;
      list.popFront();
      old_.pushBack(seat);
      seat.place_ = RoundSeat::Place::kOld;
      continue;
    }
    seat.unit_ = seat.flow_.lane().prepare(seat.flow_, now);
    if (seat.unit_ || seat.claims_) {
      settled_ = &seat;
      return true;
    }
    list.popFront();
    // An emptied new flow waits its turn as an old one, lest it come back as new before the others were served.
    if (std::exchange(seat.place_, RoundSeat::Place::kNone) == RoundSeat::Place::kNew) {
      seat.place_ = RoundSeat::Place::kOld;
      old_.pushBack(seat);
    } else {
      --seated_;
    }
  }
}

void FairRound::charge(RoundSeat& seat, size_t bytes) {
  seat.deficit_ -= static_cast<int64_t>(bytes);
  ahead_ = seat.isSparse() ? ahead_ + static_cast<int64_t>(bytes) : 0;
}

Offer Round::offer(Time now) {
  bool isHeld = shown_ < fair_->held_.size();
  if (!isHeld && !fair_->settle(now)) return {};
  RoundSeat& seat = isHeld ? *fair_->held_[shown_] : *fair_->settled_;
  return {&seat.flow_, seat.unit_};
}

// A held flow goes back to the head of its list, but for the settled one, which stays first: with the rest of its
// turn.
Packet Round::take() {
  RoundSeat* seat = nullptr;
  if (shown_ < fair_->held_.size()) {
    seat = fair_->held_[shown_];
    fair_->held_.erase(fair_->held_.begin() + static_cast<ptrdiff_t>(shown_));
    FairRound::List& list = fair_->listOf(*seat);
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

bool Round::pass(Time now) {
  if (shown_ == fair_->held_.size()) {
    Offer next = offer(now);
    if (!next || next.isClaim() || fair_->held_.size() == FairRound::kMaxHeld) return false;
    RoundSeat* seat = std::exchange(fair_->settled_, nullptr);
    fair_->listOf(*seat).popFront();
    fair_->held_.push_back(seat);
    if (!seat->isSparse()) fair_->ahead_ = 0;  // it had its turn
  }
  ++shown_;
  return true;
}

bool Round::deferClaim() {
  RoundSeat* seat = fair_->settled_;
  if (!seat || seat->unit_) return false;
  bool isNew = seat->place_ == RoundSeat::Place::kNew;
  if (isNew) fair_->new_.popFront();
  if (fair_->new_.empty()) {
    if (isNew) fair_->new_.pushFront(*seat);
    return false;
  }
  if (isNew) {
    fair_->old_.pushFront(*seat);
    seat->place_ = RoundSeat::Place::kOld;
  }
  fair_->settled_ = nullptr;
  fair_->ahead_ = 0;  // it had its turn
  return true;
}

void Round::endClaim(size_t bytes, bool again) {
  RoundSeat* seat = fair_->settled_;
  if (!seat || seat->unit_) return;
  fair_->settled_ = nullptr;
  fair_->charge(*seat, bytes);
  seat->claims_ = again;
  fair_->claims_ -= !again;
}

}  // namespace braid
