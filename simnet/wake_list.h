#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/time.h"

namespace braid::sim {

/// Which of many members are to be served next. A member is due at once, or at a time that may move in either direction.
/// Members are served in the order of their numbers, so that a run does not depend on who spoke first. All calls cost
/// O(log members) amortised, but for next(), which looks at 64 members in one step.
class WakeList {
 public:
  /// One more member, with the next number.
  void add() {
    armed_.push_back(kNever);
    if (armed_.size() > marks_.size() * 64) marks_.push_back(0);
  }

  /// The member is due, or not any more.
  void mark(size_t i) { marks_[i / 64] |= bit(i); }
  void clear(size_t i) { marks_[i / 64] &= ~bit(i); }

  /// The member wants to be served at that time and not before.
  void arm(size_t i, Time when) {
    if (when >= armed_[i]) return;  // the earlier entry asks again
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

  /// The earliest time that anybody still wants: `wanted(i)` says when member i wants to be served, kNever: not at all.
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
        heap_.pop();  // an earlier entry took its place
      }
    }
    return kNever;
  }

  /// Marks those whose time has come.
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
