#pragma once

#include <cstddef>

namespace braid {

/// The place of an object in one list. An object has one such place for each list that it can be in.
template <typename T>
struct ListLink {
  T* previous = nullptr;
  T* next = nullptr;
};

/// A doubly linked list whose links lie in the objects: no operation allocates, each takes the same time, and an
/// object can leave from anywhere. `kLink` says which of the object's links it is.
///
/// The list owns nothing. An object is in it at most once and stays where it is in memory meanwhile; the list
/// does not know whether an object is in it, its user does.
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
  /// The object behind one of the list, and the one before it; nullptr at the ends.
  static T* next(const T& item) { return (item.*kLink).next; }
  static T* previous(const T& item) { return (item.*kLink).previous; }

  void pushBack(T& item) { insert(item, last_, nullptr); }
  void pushFront(T& item) { insert(item, nullptr, first_); }
  void insertAfter(T& position, T& item) { insert(item, &position, next(position)); }

  /// Takes out an object of the list.
  void erase(T& item) {
    ListLink<T>& link = item.*kLink;
    (link.previous ? (link.previous->*kLink).next : first_) = link.next;
    (link.next ? (link.next->*kLink).previous : last_) = link.previous;
    link = {};
  }
  /// Takes out the first object; the list is not empty.
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
