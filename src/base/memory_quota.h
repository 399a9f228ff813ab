#pragma once

// A memory quota bounds what many objects hold together. It counts memory and does not allocate it.
//
//   quota    MemoryQuota: a limit, and the sum of what its users hold. Its owner chooses the unit,
//            packet buffers (PacketPool::quota()) or bytes (Tunnel), and all its users count in it.
//   user     QuotaUser: the part of a session that holds the memory, for example its queues.
//   reclaim  to have a user free memory at once, because others need it.
//
// A user joins in its constructor, calls setUsed() whenever the amount that it holds changes, and
// leaves in its destructor. The sum stays within the limit in one of two ways:
//
//   - A user may simply take memory. If setUsed() exceeds the limit, the users that hold most
//     reclaim() until it is kept or nobody can free any more. If all users are Reclaimable::kYes,
//     one that holds no more than an equal part of the limit is never asked.
//   - A user whose memory cannot be reclaimed, or that prefers to refuse new data, asks hasRoom()
//     or makeRoom() before it takes any. Three quarters of the limit are first come, first served.
//     The last quarter, the reserve, is divided into equal parts, one for each user. Beyond three
//     quarters a user has room while all that it holds, wherever it came from, fits into one part.
//
// So each user gets its part if all others ask hasRoom(). Nothing enforces that: a user that takes
// without asking may use up the reserve, and one that cannot be reclaimed may exceed the limit.
// Single-threaded; a quota must outlive its users.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "base/containers.h"

namespace braid {

class MemoryQuota;

/// Whether a quota user can free memory when others need it.
enum class Reclaimable : bool { kNo, kYes };

/// A user of a MemoryQuota. A class derives from it privately, and must never move in memory.
class QuotaUser {
 public:
  /// `quota`: nullptr means no bound. `reclaimable`: kNo means that reclaim() is never called.
  QuotaUser(MemoryQuota* quota, Reclaimable reclaimable);
  QuotaUser(const QuotaUser&) = delete;
  QuotaUser& operator=(const QuotaUser&) = delete;

  /// What this user holds, as last reported by setUsed().
  size_t used() const { return used_; }

 protected:
  virtual ~QuotaUser();

  /// Reports that this user now holds `amount` in all. If that is more than before and the sum
  /// exceeds the limit, users reclaim(), perhaps this one too: so reclaim() may run inside
  /// setUsed(), and used() may be less than `amount` afterwards.
  void setUsed(size_t amount);

  /// How far into the reserve makeRoom() may reach.
  enum class Reserve : uint8_t {
    kOwnPart,  ///< the part of this user
    kAll,      ///< all that is free, even others' parts: for data that must not be refused
  };
  /// Whether the sum and `more` fit into three quarters of the limit; or into the limit, and used()
  /// and `more` into one part of the reserve. Reclaims and sets aside nothing: setUsed() must
  /// follow.
  bool hasRoom(size_t more) const;
  /// Like hasRoom(), but if necessary first has other users reclaim() that hold more than twice
  /// used() + `more`. A call that fails makes the next 64 calls answer without a
  /// search for such users, because a search may visit all of them and callers ask for every
  /// packet.
  bool makeRoom(size_t more, Reserve reserve = Reserve::kOwnPart);

  /// Called by the quota when others need memory. Frees some at once and calls setUsed() with the
  /// smaller amount; the quota calls again while that was too little. Must not destroy a user.
  virtual void reclaim() = 0;

 private:
  friend class MemoryQuota;

  MemoryQuota* quota_;
  size_t used_ = 0;
  const Reclaimable reclaimable_;
  unsigned skipSearches_ = 0;  // calls of makeRoom() that still answer without a search
  ListLink<QuotaUser> bySize_;
};

class MemoryQuota {
 public:
  explicit MemoryQuota(size_t limit) : limit_(limit) {}
  MemoryQuota(const MemoryQuota&) = delete;
  MemoryQuota& operator=(const MemoryQuota&) = delete;

  size_t limit() const { return limit_; }
  /// The sum of what all users hold.
  size_t used() const { return used_; }
  /// How many calls of reclaim() have freed something.
  uint64_t reclaims() const { return reclaims_; }

 private:
  friend class QuotaUser;

  void set(QuotaUser& user, size_t amount);
  bool hasRoom(const QuotaUser& user, size_t more) const;
  bool reclaimFrom(QuotaUser& user);
  QuotaUser* largest(size_t enough);

  size_t limit_;
  size_t used_ = 0;
  size_t users_ = 0;
  uint64_t reclaims_ = 0;
  bool isReclaiming_ = false;  // inside reclaim(): a setUsed() there reclaims from nobody
  using List = IntrusiveList<QuotaUser, &QuotaUser::bySize_>;
  /// The reclaimable users that hold something, by size class: the number of binary digits of what
  /// they hold.
  std::array<List, std::numeric_limits<size_t>::digits + 1> classes_;
  size_t topClass_ = 0;  // all classes above it are empty
};

/// A quota user that is a member, in a class that has several of them.
class CallbackQuotaUser final : public QuotaUser {
 public:
  /// `reclaim`: see QuotaUser::reclaim(); empty: the memory is not reclaimable. It is not called
  /// from inside this user's own setUsed(), whose caller is busy with the memory in question.
  explicit CallbackQuotaUser(MemoryQuota* quota, std::function<void()> reclaim = {})
      : QuotaUser(quota, reclaim ? Reclaimable::kYes : Reclaimable::kNo),
        reclaim_(std::move(reclaim)) {}
  using QuotaUser::makeRoom;
  using QuotaUser::Reserve;
  void setUsed(size_t amount) {
    isSetting_ = true;
    QuotaUser::setUsed(amount);
    isSetting_ = false;
  }

 private:
  void reclaim() override {
    if (!isSetting_) reclaim_();
  }

  std::function<void()> reclaim_;
  bool isSetting_ = false;
};

}  // namespace braid
