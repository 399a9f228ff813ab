#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace braid {

/// A FIFO queue in one block of memory that doubles when full and never shrinks, so that no element
/// needs an allocation after warm-up. T must be movable and default-constructible. What an
/// element owned is freed when it is removed.
template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  const T& operator[](size_t i) const { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }

  void pushBack(T&& value) {
    if (size_ == slots_.size()) grow();
    ++size_;
    back() = std::move(value);
  }
  void popFront() {
    front() = T{};
    skipFront();
  }
  /// Removes the first one and returns it. A T from which was moved must own nothing.
  T takeFront() {
    T taken = std::move(front());
    skipFront();
    return taken;
  }
  void popBack() {
    back() = T{};
    --size_;
  }

 private:
  void skipFront() {
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void grow() {
    std::vector<T> more(slots_.empty() ? 16 : slots_.size() * 2);
    for (size_t i = 0; i < size_; ++i) more[i] = std::move((*this)[i]);
    slots_ = std::move(more);
    head_ = 0;
  }
  std::vector<T> slots_;  // its size is a power of two, or 0
  size_t head_ = 0;
  size_t size_ = 0;
};

/// One bit for each number of a window of kBits consecutive numbers; the bit's place is the number
/// modulo kBits. Operations on a range of numbers work on 64-bit words, so that a peer that names a
/// long range cannot cause much work.
template <size_t kBits>
class BitRing {
 public:
  static constexpr uint64_t kWordBits = 64;
  static constexpr size_t kWords = kBits / kWordBits;
  static_assert(kWords > 0 && kBits % kWordBits == 0);

  bool test(uint64_t n) const { return word(n) >> n % kWordBits & 1; }
  void set(uint64_t n) { place(n) |= bitOf(n); }
  void clear(uint64_t n) { place(n) &= ~bitOf(n); }
  void clearAll() { words_.fill(0); }
  void setAll() { words_.fill(~uint64_t{0}); }
  /// The word that holds the bit of `n`. In that word it is bit n % 64.
  uint64_t word(uint64_t n) const { return words_[n / kWordBits % kWords]; }
  /// How many consecutive numbers from `n` on have their bit set, counted up to the end of the word
  /// that holds `n`.
  size_t runAt(uint64_t n) const {
    return static_cast<size_t>(std::countr_one(word(n) >> n % kWordBits));
  }

  /// Calls visit(first, word, mask) for each word that holds bits of the `count` numbers from
  /// `first` on; `count` is at most kBits. In the call, `first` is the number of the word's lowest
  /// bit, and `mask` selects the bits of the range. Returns the number of words.
  template <typename F>
  size_t forEachWord(uint64_t first, uint64_t count, F&& visit) {
    size_t words = 0;
    for (uint64_t end = first + count; first < end; ++words) {
      uint64_t low = first % kWordBits;
      uint64_t run = std::min(kWordBits - low, end - first);
      visit(first - low, place(first), (~uint64_t{0} >> (kWordBits - run)) << low);
      first += run;
    }
    return words;
  }
  /// Clears the bits of `count` numbers from `first` on, at most kBits. Returns the number of words
  /// that hold them.
  size_t clear(uint64_t first, uint64_t count) {
    return forEachWord(first, count,
                       [](uint64_t, uint64_t& word, uint64_t mask) { word &= ~mask; });
  }

 private:
  static uint64_t bitOf(uint64_t n) { return uint64_t{1} << n % kWordBits; }
  uint64_t& place(uint64_t n) { return words_[n / kWordBits % kWords]; }

  std::array<uint64_t, kWords> words_{};
};

/// The links of an object in one list. An object has one ListLink member for each list that it can
/// be in.
template <typename T>
struct ListLink {
  T* previous = nullptr;
  T* next = nullptr;
};

/// A doubly linked list whose links are members of the objects. No operation allocates memory, each
/// takes constant time, and an object can be removed from anywhere. `kLink` is the object's member
/// for this list.
///
/// The list does not own the objects. An object is in it at most once and must not move in memory
/// while it is. The list does not know whether an object is in it; its user must.
template <typename T, ListLink<T> T::*kLink>
class IntrusiveList {
 public:
  IntrusiveList() = default;
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return first_ == nullptr; }
  /// The first and the last object; nullptr in an empty list.
  T* front() const { return first_; }
  T* back() const { return last_; }
  /// The object after `item` in the list, and the one before it; nullptr at the ends.
  static T* next(const T& item) { return (item.*kLink).next; }
  static T* previous(const T& item) { return (item.*kLink).previous; }

  void pushBack(T& item) { insert(item, last_, nullptr); }
  void pushFront(T& item) { insert(item, nullptr, first_); }
  void insertAfter(T& position, T& item) { insert(item, &position, next(position)); }

  /// Removes an object that is in the list.
  void erase(T& item) {
    ListLink<T>& link = item.*kLink;
    (link.previous ? (link.previous->*kLink).next : first_) = link.next;
    (link.next ? (link.next->*kLink).previous : last_) = link.previous;
    link = {};
  }
  /// Removes the first object and returns it. The list must not be empty.
  T* popFront() {
    T* item = first_;
    erase(*item);
    return item;
  }

 private:
  void insert(T& item, T* before, T* behind) {
    item.*kLink = {before, behind};
    (before ? (before->*kLink).next : first_) = &item;
    (behind ? (behind->*kLink).previous : last_) = &item;
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace braid
