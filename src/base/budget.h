#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/intrusive_list.h"

namespace braid {

class Budget;

/// Somebody who keeps a part of a Budget: a session's queues, or its reordering. Leaves the budget when it ends.
class Keeper {
 public:
  /// `budget` must outlive it; nullptr: without any bound. `gives`: it can give back; who cannot is never asked.
  explicit Keeper(Budget* budget, bool gives = true);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// How much it keeps.
  size_t kept() const { return kept_; }

 protected:
  virtual ~Keeper();
  /// It keeps so much now. When that is more than before and the budget is exceeded, those who keep most give back,
  /// this one too if it is among them: giveBack() may come from inside.
  void keep(size_t amount);
  /// It may keep so much more, without anybody giving back: the part that all share is not used up, or its own is not.
  bool hasRoom(size_t more) const;
  /// The same, after those who keep more than twice as much as this one would have given back, if that is needed.
  /// When it was in vain, they are not looked for again at the next calls: each would be a walk along all keepers.
  /// `all`: any free part will do, also of what is left to others.
  bool makeRoom(size_t more, bool all = false);
  /// Others need room and this one keeps most. Keeps less at once, by keep(), if it can.
  virtual void giveBack() = 0;

 private:
  friend class Budget;

  Budget* budget_;
  size_t kept_ = 0;
  bool gives_;
  unsigned rest_ = 0;  ///< calls of makeRoom() until it looks for others again
  ListLink<Keeper> link_;
};

/// An amount, of buffers or bytes, that many keepers share. As long as there is enough, each takes what it likes. Then
/// it is taken from who keeps most: whoever keeps no more than an equal part of all loses nothing. Among more than kTries
/// keepers of about the same amount (of as many binary digits) not all are compared: a packet that finds the budget
/// used up must be no walk along all peers.
///
/// Where what is kept cannot be taken away, hasRoom() is asked before: three quarters are for whoever comes first, the
/// rest is divided into equal parts for all keepers there are, so that each finds its part whatever the others do.
class Budget {
 public:
  /// Keepers that are looked at to find one that keeps much. Ours. More only while none of them keeps enough to be asked.
  static constexpr size_t kTries = 16;

  explicit Budget(size_t limit) : limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  size_t limit() const { return limit_; }
  size_t used() const { return used_; }
  /// How often a keeper had to give back.
  uint64_t taken() const { return taken_; }

 private:
  friend class Keeper;

  void set(Keeper& keeper, size_t amount);
  bool hasRoom(const Keeper& keeper, size_t more) const;
  bool takeFrom(Keeper& keeper);
  Keeper* largest(size_t enough);  // nullptr: nobody can give

  size_t limit_;
  size_t used_ = 0;
  size_t keepers_ = 0;
  uint64_t taken_ = 0;
  bool isTaking_ = false;
  using List = IntrusiveList<Keeper, &Keeper::link_>;
  /// Those who keep something and can give, by how many binary digits that has.
  std::array<List, std::numeric_limits<size_t>::digits + 1> byDigits_;
  size_t mostDigits_ = 0;  ///< lists above it are empty
};

}  // namespace braid
