#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/containers.h"
#include "base/drop.h"
#include "base/memory.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/flow_kind.h"
#include "tunnel/queue/options.h"
#include "tunnel/wire/header.h"

namespace braid {

/// Records which of the last kWindow DSNs below next() were delivered.
class DeliveryHistory {
 public:
  static constexpr uint64_t kWindow = 1024;

  Dsn next() const { return next_; }
  /// True for a DSN that was delivered, and for one that is too old to know.
  bool delivered(Dsn dsn) const { return next_ - dsn > kWindow || bits_.test(dsn.value()); }
  /// Records that `dsn`, which is below next(), was delivered.
  void mark(Dsn dsn) {
    if (next_ - dsn <= kWindow) bits_.set(dsn.value());
  }
  /// Starts again: every DSN below `next` counts as delivered.
  void restart(Dsn next) {
    next_ = next;
    bits_.setAll();
  }
  /// Raises next() to `next`; the DSNs in between count as not delivered. Returns how many 64-bit
  /// words it changed, at most kWindow / 64 + 1 however far the peer jumps.
  size_t advance(Dsn next) {
    uint64_t jump = next - next_;
    Dsn from = next_;
    next_ = next;
    if (jump < kWindow) return bits_.clear(from.value(), jump);
    bits_.clearAll();
    return BitRing<kWindow>::kWords;
  }

 private:
  Dsn next_{};
  BitRing<kWindow> bits_;
};

/// Lets every packet of a timely flow pass once. A packet that is older than
/// DeliveryHistory::kWindow counts as a duplicate.
class DuplicateFilter {
 public:
  /// The DSN after the largest one seen.
  Dsn next() const { return history_.next(); }
  /// True the first time that this DSN is given. `dsn` is below 2^62.
  bool accept(Dsn dsn) {
    if (dsn >= history_.next()) {
      history_.advance(dsn + 1);
    } else if (history_.delivered(dsn)) {
      return false;
    }
    history_.mark(dsn);
    return true;
  }

 private:
  DeliveryHistory history_;
};

/// The packets that a Resequencer has released, in order. A repaired hole releases everything
/// behind it at once. TCP can take that, but the socket of a datagram program holds fewer packets
/// (about a hundred with Linux's default) than a fast path brings in one round trip, and the rest
/// is lost. Therefore datagrams that were held are delivered in portions. Packets of other flows do
/// not wait for them.
class ReleaseQueue {
 public:
  /// A portion is this many packets, or a quarter of those that wait if that is more, so that
  /// nothing waits for long.
  static constexpr size_t kPortion = 16;
  static constexpr Duration kInterval = 1ms;

  /// A flow that is delivered in portions, with the number of its packets that wait for theirs.
  /// Only ReleaseQueue writes it. It must keep its place in memory while packets of it wait.
  class Paced {
   public:
    bool waits() const { return count_ > 0; }

   private:
    friend class ReleaseQueue;
    uint32_t count_ = 0;
  };

  /// The calls that follow happen now.
  void begin(Time now) { now_ = now, left_ = kPortion; }
  /// Adds a packet that was not held. `of`: its flow; nullptr if that is not delivered in portions.
  void pass(Packet packet, Paced* of) {
    if (of && of->waits()) return wait(std::move(packet), *of);
    ready_.pushBack(std::move(packet));
  }
  /// Adds a packet that was held.
  void release(Packet packet, Paced* of) {
    if (of && (left_ == 0 || of->waits())) return wait(std::move(packet), *of);
    left_ -= of != nullptr;
    ready_.pushBack(std::move(packet));
  }
  void onTimer(Time now) {
    if (now < nextDeadline()) return;
    next_ = now + kInterval;
    move(std::max(kPortion, later_.size() / 4));
  }
  /// Makes all waiting packets ready at once.
  void flush() { move(later_.size()); }
  /// kNever when no packet waits for its portion.
  Time nextDeadline() const { return later_.empty() ? kNever : next_; }
  bool poll(Packet& out) {
    if (ready_.empty()) return false;
    out = std::move(ready_.front());
    ready_.popFront();
    return true;
  }
  /// Packets that poll() has not returned yet.
  size_t size() const { return ready_.size() + later_.size(); }
  /// Packets that wait for their portion.
  size_t waiting() const { return later_.size(); }

 private:
  struct Waiting {
    Packet packet;
    Paced* of = nullptr;
  };

  void wait(Packet packet, Paced& of) {
    if (later_.empty()) next_ = now_ + kInterval;
    ++of.count_;
    later_.pushBack({std::move(packet), &of});
  }
  void move(size_t count) {
    for (; count > 0 && !later_.empty(); --count) {
      --later_.front().of->count_;
      ready_.pushBack(std::move(later_.front().packet));
      later_.popFront();
    }
  }

  Ring<Packet> ready_;
  Ring<Waiting> later_;
  size_t left_ = 0;  // packets that this portion may still have
  Time now_{};
  Time next_{};  // when the next portion is due
};

struct ResequencerOptions {
  Duration holdTime = kHoldTime;  ///< longest wait of a packet behind a hole
  size_t holdBytes = 12 << 20;    ///< of all slots together, as whole buffers (Packet::footprint)
  Duration patience = kFirstPatience;  ///< longest wait in a slot of ordered datagrams
  size_t maxFlows = 4096;              ///< slot numbers are below it; at most 32768
};
ResequencerOptions resequencerOptions(const QueueOptions& options);

/// Puts the packets of every ordered flow slot of a session back into order. A slot is a flow
/// number, which may serve several flows one after the other. The DSNs of a slot count its packets
/// from 0 and never restart. Packets in order pass at once. Packets behind a hole are held until
///
///   - the hole is filled, or skipped by the sender;
///   - one of them has waited for holdTime, or for `patience` in a slot of datagrams
///     (kOrderedDatagramFlow). Then it is released with all of its slot before it;
///   - the session holds more than holdBytes, or more packets and marks than maxHeld(). Then the
///     one that has waited longest is released with all of its slot before it, counted as
///     Drop::kHoldOverflow;
///   - a packet arrives that is kSpan or more ahead of the hole. Then the hole moves on, counted in
///     the same way.
///
/// Ordered datagrams that were held, and those of their slot behind them, are delivered in portions
/// (see ReleaseQueue), which delays them by a few milliseconds at most.
///
/// A packet that arrives after its hole was given up is delivered late, once. A hole in one slot
/// delays no other slot. poll() returns the packets to deliver; call it after every call of another
/// method.
///
/// Memory: a table entry of 16 bytes for each slot that was ever used, in pages of 64; a record for
/// each slot in use, which forget() frees; and object pools for what is held, which shrink when
/// nothing is.
class Resequencer {
 public:
  /// DSNs from the hole on that a slot can hold: 64 pages of 64 DSNs, the page of the hole
  /// included.
  static constexpr uint64_t kSpan = 4096;

  explicit Resequencer(const ResequencerOptions& options);
  ~Resequencer();
  Resequencer(const Resequencer&) = delete;
  Resequencer& operator=(const Resequencer&) = delete;

  void setOptions(const ResequencerOptions& options) { options_ = options; }

  /// Takes a packet of an ordered slot; `dsn` is below 2^62.
  void onPacket(FlowNumber slot, Dsn dsn, Packet packet, Time now);
  /// The sender gave up `count` packets from `first` on: nothing waits for them any more. The work
  /// is one step for each 64 of them that are within kSpan, and one for each packet that is
  /// released, whatever the peer has skipped before.
  void skip(FlowNumber slot, Dsn first, uint64_t count, Time now);
  void onTimer(Time now);
  /// Buffers are short: releases all portions, and the packet that has waited longest with all of
  /// its slot before it, counted as kHoldOverflow.
  void relieve();
  /// Frees the delivery history of slots that hold nothing and were not used after `before`.
  /// Everything below the next DSN of such a slot counts as delivered. The object pools shrink if
  /// nothing is held and nothing was held after `before`.
  void forget(Time before);
  /// Releases everything that is held, counted as kHoldOverflow, and forgets all slots.
  void clear();
  /// When onTimer() has something to release; kNever when nothing is held.
  Time nextDeadline() const {
    return std::min({waiting_.due(false, options_.holdTime), waiting_.due(true, options_.patience),
                     out_.nextDeadline()});
  }
  /// Takes the next packet to deliver; false when there is none.
  bool poll(Packet& out) { return out_.poll(out); }

  /// The slot's hole: its first DSN neither delivered nor given up; 0 for a slot without packets.
  Dsn next(FlowNumber slot) const;
  /// Packets held, including those that wait for their portion.
  size_t heldPackets() const { return held_ + out_.waiting(); }
  /// Bytes of memory, without the packets.
  size_t footprint() const;
  /// How much footprint() grows with the next packet of this slot, except for the object pools.
  size_t growth(FlowNumber slot) const;
  size_t heldBytes() const { return heldBytes_; }
  /// Packets held, plus slots with skip marks.
  size_t entries() const { return entries_; }
  /// Bound on entries(), whatever the size of the packets. Chosen: the bookkeeping of this many
  /// entries takes less memory than holdBytes.
  size_t maxHeld() const { return options_.holdBytes / 512 + 1; }
  const DropCounts& drops() const { return drops_; }

 private:
  struct Slot;
  /// A packet above the hole; or, without packet and DSN, the marks of a slot.
  struct Held {
    Packet packet;
    Dsn dsn{};
    Slot* slot = nullptr;
    Time arrived;
    ListLink<Held> byArrival;
  };
  static constexpr uint64_t kPageSize = 64;
  static constexpr size_t kPages = kSpan / kPageSize;
  static uint64_t pageOf(Dsn dsn) { return dsn.value() / kPageSize; }
  static size_t placeOf(Dsn dsn) { return dsn.value() % kPageSize; }
  static Dsn firstOf(uint64_t page) { return Dsn(page * kPageSize); }
  struct Page {
    uint64_t present = 0;  // one bit per entry
    std::array<Held*, kPageSize> entries{};
  };
  /// The DSNs above a slot's hole that will not come. Together they wait as one entry, whose time
  /// is that of the last mark added.
  struct Marks {
    BitRing<kSpan> bits;
    size_t count = 0;
    Held* entry = nullptr;
  };
  struct Window {
    std::array<Page*, kPages> pages{};  // by DSN / kPageSize, modulo kPages
    Page*& page(Dsn dsn) { return pages[pageOf(dsn) % kPages]; }
  };
  /// What is held, in the order of time: lists[false] waits for holdTime, lists[true] (Slot::brief)
  /// only for `patience`.
  struct Waiting {
    std::array<IntrusiveList<Held, &Held::byArrival>, 2> lists;
    bool empty() const { return !oldest(); }
    Held* newest(bool brief) const { return lists[brief].back(); }
    Time due(bool brief, Duration time) const {
      return lists[brief].empty() ? kNever : lists[brief].front()->arrived + time;
    }
    /// nullptr when nothing is held.
    Held* oldest() const {
      Held* a = lists[false].front();
      Held* b = lists[true].front();
      return !a || (b && b->arrived < a->arrived) ? b : a;
    }
  };
  struct Slot {
    DeliveryHistory history;
    bool brief = false;         // waits for `patience` instead of holdTime
    ReleaseQueue::Paced paced;  // used only if `brief`
    size_t held = 0;            // packets held
    Window* window = nullptr;   // while packets are held
    Marks* marks = nullptr;     // while there are marks
    Time used;
    ReleaseQueue::Paced* pace() { return brief ? &paced : nullptr; }
    /// Whether it has held packets, marks, or packets that wait for their portion.
    bool isHolding() const { return held > 0 || marks || paced.waits(); }
    Page* page(Dsn dsn) { return window ? window->page(dsn) : nullptr; }
    /// The first DSN beyond the pages of the slot, which begin with the page of the hole.
    Dsn reach() const { return firstOf(pageOf(history.next()) + kPages); }
    bool reaches(Dsn dsn) const { return pageOf(dsn) - pageOf(history.next()) < kPages; }
  };
  /// What is known of a slot for the whole life of the session.
  struct Entry {
    Dsn next{};                  // next DSN at the time when the slot was forgotten
    std::unique_ptr<Slot> slot;  // null: forgotten, or never used
  };
  static constexpr size_t kTablePage = 64;
  using TablePage = std::array<Entry, kTablePage>;
  const Entry* entryOf(FlowNumber slot) const;
  Slot* slotOf(FlowNumber slot, Time now);
  void hold(Slot& slot, Dsn dsn, Packet packet, Time now);
  void mark(Slot& slot, Dsn first, Dsn end, Time now);
  void unmark(Slot& slot, Dsn first, Dsn end);
  bool passMarks(Slot& slot);
  static Dsn lastMark(const Slot& slot);
  void wait(Held& held, Time now);
  Held* find(Slot& slot, Dsn dsn);
  Packet take(Held* held);
  void drain(Slot& slot);
  void releaseBelow(Slot& slot, Dsn end);
  void release(const Held& oldest);
  void keepBounds();
  void count(Drop cause, uint64_t n = 1) { drops_[static_cast<size_t>(cause)] += n; }

  ResequencerOptions options_;
  std::vector<std::unique_ptr<TablePage>> table_;
  size_t tablePages_ = 0;  // pages in use
  size_t slots_ = 0;       // slots that are not forgotten
  ObjectPool<Held> heldStock_;
  ObjectPool<Page, 16> pageStock_;
  ObjectPool<Window, 4> windowStock_;
  ObjectPool<Marks, 4> marksStock_;
  Waiting waiting_;     // of all slots
  size_t entries_ = 0;  // packets, and slots with marks
  size_t held_ = 0;     // packets
  size_t heldBytes_ = 0;
  size_t heldFootprint_ = 0;  // as whole buffers
  Time lastHeld_ = Time::min();
  ReleaseQueue out_;  // packets to deliver
  DropCounts drops_{};
};

/// DSNs from the hole on that every slot can hold, wherever in its page of 64 the hole is.
inline constexpr uint64_t kSurelyHeld = Resequencer::kSpan - 63;

}  // namespace braid
