#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"

namespace braid {

/// A deadline for each of some small ids, and which comes first: a binary heap that knows where each id is.
/// set() and remove() take O(log n), the rest O(1). Nothing is allocated after resize().
class DeadlineHeap {
 public:
  /// For ids below `ids`; all of them are without a deadline then.
  void resize(size_t ids) {
    places_.assign(ids, kNowhere);
    heap_.clear();
    heap_.reserve(ids);
  }
  bool contains(uint32_t id) const { return places_[id] != kNowhere; }
  size_t size() const { return heap_.size(); }
  /// The earliest deadline; kNever: there is none.
  Time first() const { return heap_.empty() ? kNever : heap_.front().at; }
  /// The id of the earliest deadline; any of several that are equal. size() must not be 0.
  uint32_t firstId() const { return heap_.front().id; }

  /// The deadline of `id` is `at` from now on, kNever included.
  void set(uint32_t id, Time at) {
    if (!contains(id)) {
      places_[id] = static_cast<uint32_t>(heap_.size());
      heap_.push_back({at, id});
    }
    size_t i = places_[id];
    heap_[i].at = at;
    settle(i);
  }
  /// `id` has no deadline from now on.
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

  std::vector<Entry> heap_;       ///< no entry is due before its parent at (i - 1) / 2
  std::vector<uint32_t> places_;  ///< where in heap_ an id's entry is, by id
};

}  // namespace braid
