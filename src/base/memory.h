#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/containers.h"

namespace braid {

/// Allocates `bytes` > 0 for a large table with random access, aligned to a cache line. Blocks of 2
/// MB and more are aligned to a huge page, and the kernel is asked to use huge pages, which avoids
/// a TLB miss at nearly every access. Throws std::bad_alloc.
void* allocateHuge(size_t bytes);
void releaseHuge(void* memory, size_t bytes);

/// Whether the records of a HugeArray are initialized at construction.
enum class Records : uint8_t {
  kMade,    ///< value-initialized
  kUnmade,  ///< uninitialized: assign each record before reading it; memory is taken at first use
};

/// An array of fixed size in memory from allocateHuge().
template <class T>
class HugeArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit HugeArray(size_t size, Records records = Records::kMade)
      : size_(size), memory_(allocateHuge(bytes(size)), Release{bytes(size)}) {
    if (records == Records::kMade) std::uninitialized_value_construct_n(data(), size);
  }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }

 private:
  struct Release {
    size_t bytes;
    void operator()(void* memory) const { releaseHuge(memory, bytes); }
  };
  static size_t bytes(size_t size) { return (size > 0 ? size : 1) * sizeof(T); }

  size_t size_;
  std::unique_ptr<void, Release> memory_;
};

class MemoryQuota;

/// A user of a MemoryQuota, for example a session's queues or its reordering buffer. Leaves the
/// quota when it is destroyed.
class QuotaUser {
 public:
  /// `budget` must outlive this; nullptr means no bound. `gives`: this user can free memory on
  /// request; a user that cannot is never asked to.
  explicit QuotaUser(MemoryQuota* budget, bool gives = true);
  QuotaUser(const QuotaUser&) = delete;
  QuotaUser& operator=(const QuotaUser&) = delete;

  /// How much this user holds, in the quota's unit (buffers or bytes).
  size_t kept() const { return kept_; }

 protected:
  virtual ~QuotaUser();
  /// Sets how much this user holds. When that is more than before and exceeds the quota, the users
  /// that hold most are asked to reclaim(). This user may be one of them, so reclaim() may be
  /// called from within keep().
  void keep(size_t amount);
  /// Whether this user may hold `more` in addition without any reclaim(): the shared part of the
  /// quota (3/4) has room, or this user's own equal part of the rest has.
  bool hasRoom(size_t more) const;
  /// Like hasRoom(), but if necessary first asks users to reclaim() that hold more than twice
  /// (kMuchMore) what this one would hold. After a call that failed, the next 64 calls (kRest) do
  /// not search again, because each search may walk through many users. `all`: any free part of the
  /// quota will do, even one that is reserved for other users.
  bool makeRoom(size_t more, bool all = false);
  /// Called when others need room and this user holds most. The user frees something at once if it
  /// can, and calls keep() with the smaller amount.
  virtual void reclaim() = 0;

 private:
  friend class MemoryQuota;

  MemoryQuota* budget_;
  size_t kept_ = 0;
  bool gives_;
  unsigned rest_ = 0;  ///< calls of makeRoom() that still return false without a search
  ListLink<QuotaUser> link_;
};

/// An amount of buffers or bytes that many users share. As long as there is enough, each user takes
/// what it needs. When the quota is exceeded, the users that hold most must give back, so a user
/// that holds no more than an equal part of the quota loses nothing. The search for the largest
/// user looks at kTries users of the largest size class (equal number of binary digits) instead of
/// all, so that its cost does not grow with the number of peers.
///
/// Users whose memory cannot be reclaimed ask hasRoom() first. Three quarters of the quota are
/// first come, first served. The last quarter is divided into equal parts for all users, so that
/// each user gets its part whatever the others do.
class MemoryQuota {
 public:
  /// Users that a search for the largest one looks at. It looks at more only while none of them
  /// holds enough to be asked.
  static constexpr size_t kTries = 16;

  explicit MemoryQuota(size_t limit) : limit_(limit) {}
  MemoryQuota(const MemoryQuota&) = delete;
  MemoryQuota& operator=(const MemoryQuota&) = delete;

  size_t limit() const { return limit_; }
  size_t used() const { return used_; }
  /// How often a user had to give something back.
  uint64_t taken() const { return taken_; }

 private:
  friend class QuotaUser;

  void set(QuotaUser& keeper, size_t amount);
  bool hasRoom(const QuotaUser& keeper, size_t more) const;
  bool takeFrom(QuotaUser& keeper);
  QuotaUser* largest(size_t enough);  // nullptr: no user can give

  size_t limit_;
  size_t used_ = 0;
  size_t keepers_ = 0;
  uint64_t taken_ = 0;
  bool isTaking_ = false;
  using List = IntrusiveList<QuotaUser, &QuotaUser::link_>;
  /// Users that hold something and can give it back, by the number of binary digits of what they
  /// hold.
  std::array<List, std::numeric_limits<size_t>::digits + 1> byDigits_;
  size_t mostDigits_ = 0;  ///< lists above it are empty
};

/// A user of a memory quota that asks before it keeps more.
class CallbackQuotaUser final : public QuotaUser {
 public:
  /// `reclaim`: frees some of what is kept when others need memory; empty: nothing can be freed.
  explicit CallbackQuotaUser(MemoryQuota* budget, std::function<void()> reclaim = {})
      : QuotaUser(budget, reclaim != nullptr), reclaim_(std::move(reclaim)) {}
  bool mayKeep(size_t more) { return makeRoom(more); }
  /// Like mayKeep(), for data that cannot wait: may also use the free part that is reserved for
  /// others.
  bool mustKeep(size_t more) { return makeRoom(more, true); }
  void set(size_t amount) {
    isSetting_ = true;
    keep(amount);
    isSetting_ = false;
  }

 private:
  // Not from inside of set(): its caller is working on what reclaim_() would free.
  void reclaim() override {
    if (!isSetting_) reclaim_();
  }

  std::function<void()> reclaim_;
  bool isSetting_ = false;
};

/// A pool of reusable objects, allocated on demand in slabs of kSlab. Once enough slabs exist,
/// neither take() nor give() allocates. Objects do not move in memory, and are destroyed with the
/// pool.
template <typename T, size_t kSlab = 64>
class ObjectPool {
 public:
  ObjectPool() = default;
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  /// An unused object, in the state in which it was given back, or T{}.
  T* take() {
    if (free_.empty()) grow();
    T* item = free_.back();
    free_.pop_back();
    return item;
  }
  /// Returns an object of this pool to it.
  void give(T* item) { free_.push_back(item); }

  /// Frees all memory of the pool, if no object is in use.
  void shrink() {
    if (inUse() > 0) return;
    slabs_.clear();
    slabs_.shrink_to_fit();
    free_.clear();
    free_.shrink_to_fit();
  }

  /// Memory of all objects, in use or not, in bytes.
  size_t footprint() const { return slabs_.size() * kSlab * sizeof(T); }
  /// Objects taken and not given back.
  size_t inUse() const { return slabs_.size() * kSlab - free_.size(); }

 private:
  void grow() {
    slabs_.push_back(std::make_unique<T[]>(kSlab));
    free_.reserve(slabs_.size() * kSlab);
    for (size_t i = kSlab; i-- > 0;) free_.push_back(&slabs_.back()[i]);
  }

  std::vector<std::unique_ptr<T[]>> slabs_;
  std::vector<T*> free_;
};

/// Objects made on demand. At most `kMost` returned objects are kept for reuse, the memory of
/// others is freed. So memory that was needed once, perhaps for a hostile peer, is not kept
/// forever.
template <typename T, size_t kMost>
class BoundedPool {
 public:
  /// An object in the state in which it was returned, or T{}.
  T* take() {
    ++inUse_;
    if (free_.empty()) return std::make_unique<T>().release();
    T* item = free_.back().release();
    free_.pop_back();
    return item;
  }
  /// Returns an object to the pool.
  void give(T* item) {
    --inUse_;
    std::unique_ptr<T> owned(item);
    if (free_.size() < kMost) free_.push_back(std::move(owned));
  }
  /// Frees the objects that are not in use.
  void shrink() { free_.clear(); }
  /// Objects taken and not returned.
  size_t inUse() const { return inUse_; }

 private:
  std::vector<std::unique_ptr<T>> free_;
  size_t inUse_ = 0;
};

}  // namespace braid
