#include "base/memory_quota.h"

#include <algorithm>
#include <bit>

namespace braid {

namespace {
/// The reserve is 1 / kReserveShare of the limit.
constexpr size_t kReserveShare = 4;
/// makeRoom() reclaims only from a user that holds more than kMuchMore times what the asking user
/// would hold. With a smaller factor two users of about equal size could take memory from each
/// other in turn.
constexpr size_t kMuchMore = 2;
/// Calls of makeRoom() that answer without a search after one whose search failed.
constexpr unsigned kSkippedSearches = 64;
/// Users that a search compares. It looks at more only while none of them holds enough.
constexpr size_t kSearchWidth = 16;
}  // namespace

QuotaUser::QuotaUser(MemoryQuota* quota, Reclaimable reclaimable)
    : quota_(quota), reclaimable_(reclaimable) {
  if (quota_) ++quota_->users_;
}

QuotaUser::~QuotaUser() {
  if (!quota_) return;
  quota_->set(*this, 0);
  --quota_->users_;
}

void QuotaUser::setUsed(size_t amount) {
  if (quota_) {
    quota_->set(*this, amount);
  } else {
    used_ = amount;
  }
}

bool QuotaUser::hasRoom(size_t more) const {
  return !quota_ || quota_->hasRoom(*this, more);
}

bool QuotaUser::makeRoom(size_t more, Reserve reserve) {
  auto fits = [&] {
    return hasRoom(more) || (reserve == Reserve::kAll && quota_->used_ + more <= quota_->limit_);
  };
  if (fits()) return true;
  if (skipSearches_ > 0) return --skipSearches_, false;
  while (!fits()) {
    const size_t enough = kMuchMore * (used_ + more);
    const bool mayExist = static_cast<size_t>(std::bit_width(enough)) <= quota_->topClass_;
    QuotaUser* other = mayExist ? quota_->largest(enough) : nullptr;
    bool freed = other && other != this && other->used_ > enough && quota_->reclaimFrom(*other);
    if (!freed) return skipSearches_ = kSkippedSearches, false;
  }
  return true;
}

void MemoryQuota::set(QuotaUser& user, size_t amount) {
  size_t before = user.used_;
  if (amount == before) return;
  user.used_ = amount;
  used_ = used_ - before + amount;
  const auto from = static_cast<size_t>(std::bit_width(before)),
             to = static_cast<size_t>(std::bit_width(amount));
  if (user.reclaimable_ == Reclaimable::kYes && from != to) {
    if (from > 0) classes_[from].erase(user);
    if (to > 0) classes_[to].pushBack(user);
    topClass_ = std::max(topClass_, to);
  }
  if (amount < before || isReclaiming_) return;
  for (QuotaUser* most = nullptr;
       used_ > limit_ && (most = largest(used_ / users_)) && reclaimFrom(*most);) {
  }
}

bool MemoryQuota::hasRoom(const QuotaUser& user, size_t more) const {
  const size_t reserve = limit_ / kReserveShare;
  if (used_ + more <= limit_ - reserve) return true;
  return used_ + more <= limit_ && user.used_ + more <= reserve / users_;
}

// False when the user freed nothing.
bool MemoryQuota::reclaimFrom(QuotaUser& user) {
  size_t before = used_;
  bool nested = isReclaiming_;
  isReclaiming_ = true;
  user.reclaim();
  isReclaiming_ = nested;
  if (used_ >= before) return false;
  ++reclaims_;
  return true;
}

// The largest of the first kSearchWidth users of the highest size class that is not empty, or,
// while none of these holds more than `enough`, of further ones. So the cost does not grow with the
// number of users as a rule. Users that were looked at move to the end of their list. nullptr when
// no reclaimable user holds anything.
QuotaUser* MemoryQuota::largest(size_t enough) {
  while (topClass_ > 0 && classes_[topClass_].empty()) --topClass_;
  List& list = classes_[topClass_];
  QuotaUser* most = nullptr;
  const QuotaUser* last = list.back();
  for (size_t looked = 1; !list.empty(); ++looked) {
    QuotaUser* user = list.popFront();
    list.pushBack(*user);
    if (!most || user->used_ > most->used_) most = user;
    if (user == last || (looked >= kSearchWidth && most->used_ > enough)) break;
  }
  return most;
}

}  // namespace braid
