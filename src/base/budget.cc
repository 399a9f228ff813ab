#include "base/budget.h"

#include <algorithm>
#include <bit>

namespace braid {

namespace {
/// One part in so many is divided among all keepers. Ours.
constexpr size_t kOwnPart = 4;
/// Who keeps so many times as much as another would have makes room for it: not at every difference, lest two of a
/// size take it from each other in turn. Ours.
constexpr size_t kMuchMore = 2;
/// So many calls of makeRoom() rest after one that was in vain: who asks is often somebody's packet. Ours.
constexpr unsigned kRest = 64;
}  // namespace

Keeper::Keeper(Budget* budget, bool gives) : budget_(budget), gives_(gives) {
  if (budget_) ++budget_->keepers_;
}

Keeper::~Keeper() {
  if (!budget_) return;
  budget_->set(*this, 0);
  --budget_->keepers_;
}

void Keeper::keep(size_t amount) {
  if (budget_) {
    budget_->set(*this, amount);
  } else {
    kept_ = amount;
  }
}

bool Keeper::hasRoom(size_t more) const {
  return !budget_ || budget_->hasRoom(*this, more);
}

bool Keeper::makeRoom(size_t more, bool all) {
  auto fits = [&] { return hasRoom(more) || (all && budget_->used_ + more <= budget_->limit_); };
  if (fits()) return true;
  if (rest_ > 0) return --rest_, false;
  while (!fits()) {
    const size_t less = kMuchMore * (kept_ + more);
    const bool mayGive = static_cast<size_t>(std::bit_width(less)) <= budget_->mostDigits_;
    Keeper* other = mayGive ? budget_->largest(less) : nullptr;
    bool gives = other && other != this && other->kept_ > less && budget_->takeFrom(*other);
    if (!gives) return rest_ = kRest, false;
  }
  return true;
}

void Budget::set(Keeper& keeper, size_t amount) {
  size_t before = keeper.kept_;
  if (amount == before) return;
  keeper.kept_ = amount;
  used_ = used_ - before + amount;
  const auto from = static_cast<size_t>(std::bit_width(before)),
             to = static_cast<size_t>(std::bit_width(amount));
  if (keeper.gives_ && from != to) {
    if (from > 0) byDigits_[from].erase(keeper);
    if (to > 0) byDigits_[to].pushBack(keeper);
    mostDigits_ = std::max(mostDigits_, to);
  }
  if (amount < before || isTaking_) return;
  for (Keeper* most = nullptr; used_ > limit_ && (most = largest(used_ / keepers_)) && takeFrom(*most);) {
  }
}

bool Budget::hasRoom(const Keeper& keeper, size_t more) const {
  if (used_ + more <= limit_ - limit_ / kOwnPart) return true;
  return used_ + more <= limit_ && keeper.kept_ + more <= limit_ / kOwnPart / keepers_;
}

// False when it gives nothing.
bool Budget::takeFrom(Keeper& keeper) {
  size_t before = used_;
  bool nested = isTaking_;
  isTaking_ = true;
  keeper.giveBack();
  isTaking_ = nested;
  if (used_ >= before) return false;
  ++taken_;
  return true;
}

// Of those who can give, and keep about as much as the one that keeps most: of the first kTries the largest, or of as many
// more as it takes to find one that keeps more than `enough`. Who was looked at goes behind the others.
Keeper* Budget::largest(size_t enough) {
  while (mostDigits_ > 0 && byDigits_[mostDigits_].empty()) --mostDigits_;
  List& list = byDigits_[mostDigits_];
  Keeper* most = nullptr;
  const Keeper* last = list.back();
  for (size_t tries = 1; !list.empty(); ++tries) {
    Keeper* keeper = list.popFront();
    list.pushBack(*keeper);
    if (!most || keeper->kept_ > most->kept_) most = keeper;
    if (keeper == last || (tries >= kTries && most->kept_ > enough)) break;
  }
  return most;
}

}  // namespace braid
