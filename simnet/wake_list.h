#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/time.h"

namespace braid::sim {

/// Tells which of many members must be served next. A member is due at once (mark()), or at a time
/// that may move in either direction (arm()). Due members are served in the order of their numbers,
/// so a run does not depend on the order of the calls. All calls take O(log members) amortised,
/// except next(), which scans 64 members per step.
class WakeList {
 public:
  /// Adds a member, with the next number.
  void add() {
    armed_.push_back(kNever);
    if (armed_.size() > marks_.size() * 64) marks_.push_back(0);
  }

  /// Makes the member due, or no longer due.
  void mark(size_t i) { marks_[i / 64] |= bit(i); }
  void clear(size_t i) { marks_[i / 64] &= ~bit(i); }

  /// The member wants to be served at `when`, not earlier.
  void arm(size_t i, Time when) {
    // when the earlier entry expires, nextTime() asks the member again
    if (when >= armed_[i]) return;
    armed_[i] = when;
    heap_.push({when, i});
  }

  /// The first due member with this number or a higher one; size() when there is none.
  size_t next(size_t from) const {
    for (size_t word = from / 64; word < marks_.size(); ++word) {
      uint64_t bits = marks_[word];
      if (word == from / 64) bits &= ~uint64_t{0} << from % 64;
      if (bits != 0) return word * 64 + static_cast<size_t>(std::countr_zero(bits));
    }
    return size();
  }
  size_t size() const { return armed_.size(); }

  /// The earliest time at which a member wants to be served. `wanted(i)` returns the time that
  /// member i wants now; kNever means not at all.
  template <typename Wanted>
  Time nextTime(Wanted wanted) {
    while (!heap_.empty()) {
      auto [when, i] = heap_.top();
      if (armed_[i] == when) {
        Time wish = wanted(i);
        if (wish <= when) return when;
        armed_[i] = kNever;
        heap_.pop();
        if (wish != kNever) arm(i, wish);
      } else {
        heap_.pop();  // an earlier entry has replaced it
      }
    }
    return kNever;
  }

  /// Marks all members whose time has come.
  template <typename Wanted>
  void collect(Time now, Wanted wanted) {
    while (nextTime(wanted) <= now) {
      mark(heap_.top().member);
      armed_[heap_.top().member] = kNever;
      heap_.pop();
    }
  }

 private:
  struct Entry {
    Time when;
    size_t member;
    bool operator>(const Entry& b) const { return when > b.when; }
  };
  static uint64_t bit(size_t i) { return uint64_t{1} << i % 64; }

  std::vector<uint64_t> marks_;
  std::vector<Time> armed_;  // the earliest entry of each member
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

}  // namespace braid::sim
