#include "base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace braid {

namespace {
constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;  // bytes, on x86-64 and, with 4 KB pages, arm64

std::align_val_t alignmentOf(size_t bytes) {
  return std::align_val_t(bytes >= kHugePage ? kHugePage : kCacheLine);
}
}  // namespace

void* allocateHuge(size_t bytes) {
  void* memory = ::operator new(bytes, alignmentOf(bytes));
  // Only a hint: without huge pages everything works, but more slowly. The part after the last
  // whole huge page stays on small pages.
  if (bytes >= kHugePage) (void)madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void releaseHuge(void* memory, size_t bytes) {
  ::operator delete(memory, alignmentOf(bytes));
}

namespace {
/// 1 / kOwnPart of the quota is reserved: it is divided equally among all users.
constexpr size_t kOwnPart = 4;
/// A user must reclaim() only if it holds more than kMuchMore times what the asking user would
/// hold. With a smaller factor two users of about equal size could take memory from each other in
/// turn.
constexpr size_t kMuchMore = 2;
/// After a makeRoom() that failed, this number of calls returns false without a search, because
/// makeRoom() may be called for every packet.
constexpr unsigned kRest = 64;
}  // namespace

QuotaUser::QuotaUser(MemoryQuota* budget, bool gives) : budget_(budget), gives_(gives) {
  if (budget_) ++budget_->keepers_;
}

QuotaUser::~QuotaUser() {
  if (!budget_) return;
  budget_->set(*this, 0);
  --budget_->keepers_;
}

void QuotaUser::keep(size_t amount) {
  if (budget_) {
    budget_->set(*this, amount);
  } else {
    kept_ = amount;
  }
}

bool QuotaUser::hasRoom(size_t more) const {
  return !budget_ || budget_->hasRoom(*this, more);
}

bool QuotaUser::makeRoom(size_t more, bool all) {
  auto fits = [&] { return hasRoom(more) || (all && budget_->used_ + more <= budget_->limit_); };
  if (fits()) return true;
  if (rest_ > 0) return --rest_, false;
  while (!fits()) {
    const size_t less = kMuchMore * (kept_ + more);
    const bool mayGive = static_cast<size_t>(std::bit_width(less)) <= budget_->mostDigits_;
    QuotaUser* other = mayGive ? budget_->largest(less) : nullptr;
    bool gives = other && other != this && other->kept_ > less && budget_->takeFrom(*other);
    if (!gives) return rest_ = kRest, false;
  }
  return true;
}

void MemoryQuota::set(QuotaUser& keeper, size_t amount) {
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
  for (QuotaUser* most = nullptr;
       used_ > limit_ && (most = largest(used_ / keepers_)) && takeFrom(*most);) {
  }
}

bool MemoryQuota::hasRoom(const QuotaUser& keeper, size_t more) const {
  if (used_ + more <= limit_ - limit_ / kOwnPart) return true;
  return used_ + more <= limit_ && keeper.kept_ + more <= limit_ / kOwnPart / keepers_;
}

// Asks `keeper` to reclaim(). False when that freed nothing.
bool MemoryQuota::takeFrom(QuotaUser& keeper) {
  size_t before = used_;
  bool nested = isTaking_;
  isTaking_ = true;
  keeper.reclaim();
  isTaking_ = nested;
  if (used_ >= before) return false;
  ++taken_;
  return true;
}

// Finds a large user among those that can give. Looks at the list of the largest size class (most
// binary digits): returns the largest of the first kTries users, or looks further until one holds
// more than `enough`. Users that were looked at are moved to the end of the list.
QuotaUser* MemoryQuota::largest(size_t enough) {
  while (mostDigits_ > 0 && byDigits_[mostDigits_].empty()) --mostDigits_;
  List& list = byDigits_[mostDigits_];
  QuotaUser* most = nullptr;
  const QuotaUser* last = list.back();
  for (size_t tries = 1; !list.empty(); ++tries) {
    QuotaUser* keeper = list.popFront();
    list.pushBack(*keeper);
    if (!most || keeper->kept_ > most->kept_) most = keeper;
    if (keeper == last || (tries >= kTries && most->kept_ > enough)) break;
  }
  return most;
}

}  // namespace braid
