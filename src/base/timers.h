#pragma once

// The timers of one object. An enum names them, in the order in which they fire when several are
// due. Its last value, kCount, is not a timer.
//
// A deadline that is a state of its own is kept in a TimerTable. A deadline that follows from other
// state, as a probe timeout (PTO) follows from the oldest packet in flight, is computed by a
// function that gives the deadline of each timer. Both nextDeadline() and onTimer() of the object
// then loop over kTimersOf and call that function. Either way each condition of a timer is written
// once.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/time.h"

namespace braid {

/// Keeps a deadline for each of some small ids and finds the earliest. It is a binary heap with an
/// index from id to heap position. set() and remove() take O(log n), everything else O(1). Nothing
/// is allocated after resize().
class DeadlineHeap {
 public:
  /// Prepares for ids below `ids` and removes all deadlines.
  void resize(size_t ids) {
    places_.assign(ids, kNowhere);
    heap_.clear();
    heap_.reserve(ids);
  }
  bool contains(uint32_t id) const { return places_[id] != kNowhere; }
  size_t size() const { return heap_.size(); }
  /// The earliest deadline; kNever when there is none.
  Time first() const { return heap_.empty() ? kNever : heap_.front().at; }
  /// The id with the earliest deadline; if several are equal, any of them. size() must not be 0.
  uint32_t firstId() const { return heap_.front().id; }

  /// Sets the deadline of `id`. kNever is allowed and counts as a deadline.
  void set(uint32_t id, Time at) {
    if (!contains(id)) {
      places_[id] = static_cast<uint32_t>(heap_.size());
      heap_.push_back({at, id});
    }
    size_t i = places_[id];
    heap_[i].at = at;
    settle(i);
  }
  /// Removes the deadline of `id`, if it has one.
  void remove(uint32_t id) {
    if (!contains(id)) return;
    size_t i = places_[id];
    exchange(i, heap_.size() - 1);
    heap_.pop_back();
    places_[id] = kNowhere;
    if (i < heap_.size()) settle(i);
  }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Entry {
    Time at;
    uint32_t id;
  };

  void exchange(size_t i, size_t j) {
    std::swap(heap_[i], heap_[j]);
    places_[heap_[i].id] = static_cast<uint32_t>(i);
    places_[heap_[j].id] = static_cast<uint32_t>(j);
  }
  /// Moves the entry at `i`, the only one that may be out of order, up or down to its place.
  void settle(size_t i) {
    for (; i > 0 && heap_[i].at < heap_[(i - 1) / 2].at; i = (i - 1) / 2) exchange(i, (i - 1) / 2);
    while (true) {
      size_t least = i;
      for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child) {
        if (heap_[child].at < heap_[least].at) least = child;
      }
      if (least == i) return;
      exchange(i, least);
      i = least;
    }
  }

  std::vector<Entry> heap_;       ///< heap order: no entry is due before its parent at (i - 1) / 2
  std::vector<uint32_t> places_;  ///< index in heap_, by id
};

/// How many timers the enum E names.
template <class E>
inline constexpr size_t kTimerCount = static_cast<size_t>(E::kCount);

/// The timers that the enum E names, in order.
template <class E>
inline constexpr std::array<E, kTimerCount<E>> kTimersOf = [] {
  std::array<E, kTimerCount<E>> timers{};
  for (size_t i = 0; i < timers.size(); ++i) timers[i] = static_cast<E>(i);
  return timers;
}();

/// A deadline for each timer of E; kNever for a stopped timer. For a handful of timers only,
/// because next() looks at all of them.
template <class E>
class TimerTable {
 public:
  TimerTable() { deadlines_.fill(kNever); }

  /// Sets the deadline of `timer`; kNever stops it.
  void set(E timer, Time at) { deadlines_[index(timer)] = at; }
  void stop(E timer) { set(timer, kNever); }
  void stopAll() { deadlines_.fill(kNever); }
  /// When the timer is due; kNever when it is stopped.
  Time at(E timer) const { return deadlines_[index(timer)]; }
  /// Whether the deadline has come. The timer stays due until it is set again or stopped.
  bool isDue(E timer, Time now) const { return at(timer) <= now; }
  /// The earliest deadline; kNever when all timers are stopped.
  Time next() const { return *std::min_element(deadlines_.begin(), deadlines_.end()); }

 private:
  static constexpr size_t index(E timer) { return static_cast<size_t>(timer); }

  std::array<Time, kTimerCount<E>> deadlines_;
};

/// A timing wheel with one timer for each of a fixed number of small ids. Arming, cancelling and
/// expiry are O(1), whatever the number of timers (Varghese and Lauck, "Hashed and Hierarchical
/// Timing Wheels", SOSP 1987, scheme 7). It has levels of 64 slots; a timer is moved to a lower
/// level as its time comes near, at most three times.
///
/// A timer never fires early, and fires at most one tick late if advance() is called at
/// nextDeadline(). A deadline beyond the horizon fires at the horizon, so a user must check its own
/// deadline when a timer fires.
class TimerWheel {
 public:
  static constexpr size_t kLevels = 4;
  static constexpr size_t kSlots = 64;
  static constexpr Duration kDefaultTick = 250us;
  /// Ticks to the farthest slot: 69 minutes with the default tick.
  static constexpr uint32_t kHorizon = kSlots * kSlots * kSlots * (kSlots - 1);

  explicit TimerWheel(size_t timers, Duration tick = kDefaultTick);

  Duration tick() const { return tick_; }
  /// Sets the timer of `id` to fire at the first tick at or after `at`. Replaces its former
  /// deadline.
  void arm(uint32_t id, Time at);
  /// Like arm(), but keeps an earlier deadline of `id`.
  void armEarlier(uint32_t id, Time at);
  void cancel(uint32_t id);
  bool isArmed(uint32_t id) const { return nodes_[id].slot != kNone16; }
  size_t armed() const { return armed_; }
  /// The time at which advance() must be called next, perhaps only to move timers to a lower level;
  /// kNever without an armed timer.
  Time nextDeadline() const;

  /// Advances to `now` and calls expire(id) for every timer whose time has come; that timer is no
  /// longer armed then. expire() may arm and cancel any timer. A `now` earlier than before has no
  /// effect.
  template <typename F>
  void advance(Time now, F&& expire) {
    uint64_t target = now.time_since_epoch() < Duration(0) ? 0 : tickBefore(now);
    while (now_ < target) {
      uint64_t next = nextEvent();
      now_ = next < target ? next : target;
      if (next > target) return;
      for (size_t level = kLevels - 1; level > 0; --level) cascade(level);
      uint32_t& head = heads_[now_ % kSlots];
      while (head != kNone) {
        uint32_t id = head;
        unlink(id);
        expire(id);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint16_t kNone16 = UINT16_MAX;
  struct Node {
    uint32_t next = kNone;
    uint32_t prev = kNone;  // kNone: this node is the first of its slot
    uint32_t tick = 0;      // low 32 bits of its tick; all ticks are within the horizon
    uint16_t slot = kNone16;
  };

 public:
  static constexpr size_t kBytesPerTimer = sizeof(Node);

 private:
  uint32_t tickOf(Time at) const;
  uint64_t tickBefore(Time t) const { return static_cast<uint64_t>(t.time_since_epoch() / tick_); }
  uint64_t nextEvent() const;
  void insert(uint32_t id);
  void unlink(uint32_t id);
  void cascade(size_t level);

  Duration tick_;
  uint64_t now_ = 0;  // in ticks; all timers up to this tick have fired
  size_t armed_ = 0;
  HugeArray<Node> nodes_;
  std::array<uint32_t, kLevels * kSlots> heads_;
  std::array<uint64_t, kLevels> occupied_{};  // one bit per slot that holds a timer
};

}  // namespace braid
