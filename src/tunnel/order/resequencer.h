#pragma once

// Puts received inner packets back into the order in which they were sent. Each session has one
// Resequencer, in its PacketReceiver. It serves all ordered flows: TCP, and inner datagrams (UDP
// and the like) that need order. (Bytes of streams are ordered by stream/reassembler.h.)
//
// Terms:
//   slot       a flow number of the wire below kDatagramFlow (32768): of TCP below
//              kOrderedDatagramFlow (16384), of ordered datagrams from there on ("slot of
//              datagrams"). It may serve several inner flows, one after the other. Flow numbers
//              from kDatagramFlow on are of unordered datagrams, which do not come here.
//   DSN        the number of a packet in its slot, from 0 on; it never restarts.
//   hole       the slot's next DSN to deliver. All before it are delivered or given up.
//   held       a packet that arrived above the hole, and waits.
//   skipped    the sender said (SKIP frame) that it has given up a DSN. Above the hole, a mark
//              remembers that.
//   entry      what waits for a hole and can time out: a held packet, or all marks of a slot.
//   to release an entry: to deliver all held packets of its slot up to it (of marks: up to the last
//              one), although others before them are missing; these are given up.
//
// A packet at the hole is delivered at once. A packet above it is held until
//   - the hole is filled or skipped;
//   - it is released because an entry has waited for holdTime, or for `patience` in a slot of
//     datagrams;
//   - held packets take more than holdBytes, or there are more than maxEntries() entries: then the
//     entry of all slots that has waited longest is released (Drop::kHoldOverflow then counts each
//     packet delivered too early, although it is not dropped);
//   - a packet arrives too far above the hole (kSpan): then the hole moves up just so far that this
//     packet can be held, and what is held below is delivered (kHoldOverflow, too).
// A packet that arrives below the hole is delivered late, once. A hole in one slot delays no other
// slot. Datagrams that were held are delivered in portions, one each ms (pacing, see ReleaseQueue),
// because their sockets hold few packets.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/containers.h"
#include "base/drop.h"
#include "base/memory.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/order/duplicate_filter.h"
#include "tunnel/order/release_queue.h"
#include "tunnel/queue/flow_kind.h"
#include "tunnel/queue/options.h"
#include "tunnel/wire/header.h"

namespace braid {

struct ResequencerOptions {
  Duration holdTime = kHoldTime;  ///< longest wait of a packet in a slot of TCP
  /// Held packets of all slots together, in bytes of memory: each as its whole buffer
  /// (Packet::footprint). What keeps them in order may take as much again, see maxEntries().
  size_t holdBytes = 12 << 20;
  /// Longest wait in a slot of datagrams. PacketReceiver sets it as the RTT of the paths changes.
  Duration patience = kFirstPatience;
  /// Bound of slot numbers: all are below it. At most kDatagramFlow, the value that
  /// resequencerOptions() sets. With the default here, all slots are of TCP.
  size_t maxFlows = 4096;
};
ResequencerOptions resequencerOptions(const QueueOptions& options);

/// See the top of this file. PacketReceiver calls onPacket() and skip() for the frames that arrive,
/// onTimer() at nextDeadline(), and after each of these and of releaseOldest() and releaseAll()
/// polls until poll() is false.
///
/// Memory: a table entry of 16 bytes, in pages of 64, for each slot that was ever used; a record
/// for each slot in use, until freeIdle(); and object pools for what is held, which shrink when
/// nothing is.
class Resequencer {
 public:
  /// What is held or marked lies in 64 pages of 64 DSNs, of which the first is the page of the
  /// hole. So it reaches kSpan - 64 to kSpan - 1 above the hole.
  static constexpr uint64_t kSpan = 4096;

  explicit Resequencer(const ResequencerOptions& options);
  ~Resequencer();
  Resequencer(const Resequencer&) = delete;
  Resequencer& operator=(const Resequencer&) = delete;

  /// Smaller bounds take effect at the next event.
  void setOptions(const ResequencerOptions& options) { options_ = options; }

  /// A packet arrived; `dsn` is below 2^62. Dropped as kDuplicate when it was delivered before, is
  /// held already, or is too old to know (DeliveryHistory); as kFlowTableFull when `slot` is not
  /// below maxFlows.
  void onPacket(FlowNumber slot, Dsn dsn, Packet packet, Time now);
  /// The sender gave up `count` packets, 1 to kMaxSkip, from `first` on. Those that arrived are
  /// delivered all the same. Ignored: DSNs below the hole, those beyond the pages (kSpan), where
  /// time ends the wait, and slots not below maxFlows. The work is one step for each 64 DSNs and
  /// one for each packet that is released.
  void skip(FlowNumber slot, Dsn first, uint64_t count, Time now);
  /// Releases what has waited too long, and makes the next portion of datagrams ready.
  void onTimer(Time now);
  /// When onTimer() has something to do; kNever without entries and portions that wait.
  Time nextDeadline() const {
    return std::min({waiting_.due(false, options_.holdTime), waiting_.due(true, options_.patience),
                     out_.nextDeadline()});
  }
  /// Takes the next packet to deliver; false when there is none.
  bool poll(Packet& out) { return out_.poll(out); }

  /// PacketReceiver and Inbound call it when buffers are short: releases the entry that has waited
  /// longest (kHoldOverflow), and makes all portions ready at once.
  void releaseOldest();
  /// PacketReceiver calls it when the memory quota asks and freeIdle() has freed nothing: releases
  /// all that is held (kHoldOverflow), and frees the records of all slots.
  void releaseAll();
  /// Frees the records of slots that hold nothing and were not used after `before`. Their holes are
  /// remembered; everything below them counts as delivered. The object pools shrink, too, if
  /// nothing is held now and nothing has begun to be held after `before`. PacketReceiver calls it
  /// every 10 s, and when the memory quota asks.
  void freeIdle(Time before);

  /// The slot's hole; 0 for a slot that was never used.
  Dsn next(FlowNumber slot) const;
  /// Packets in here that were not delivered: held, or released and waiting for their portion. Only
  /// the former count in heldBytes() and entries().
  size_t heldPackets() const { return held_ + out_.waiting(); }
  /// Bytes of the held packets themselves, without the rest of their buffers. (holdBytes bounds the
  /// whole buffers.)
  size_t heldBytes() const { return heldBytes_; }
  /// Held packets, plus slots with marks.
  size_t entries() const { return entries_; }
  /// Most entries(), at least 1: holdBytes divided by one object of each of the object pools, the
  /// most that one entry takes.
  size_t maxEntries() const;
  /// Bytes of memory for all but the packets.
  size_t footprint() const;
  /// How much footprint() grows with the next packet of this slot, without the object pools.
  size_t growth(FlowNumber slot) const;
  const DropCounts& drops() const { return drops_; }

 private:
  struct Slot;
  /// An entry: a held packet; or, without packet and DSN, the marks of a slot.
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
  static size_t bitOf(Dsn dsn) { return dsn.value() % kPageSize; }
  static Dsn firstOf(uint64_t page) { return Dsn(page * kPageSize); }
  struct Page {
    uint64_t present = 0;  // one bit for each packet
    std::array<Held*, kPageSize> packets{};
  };
  /// The skipped DSNs above a slot's hole. They are one entry, whose time is that of the last mark
  /// added: new marks put its end off, but not that of held packets.
  struct Marks {
    BitRing<kSpan> bits;
    size_t count = 0;
    Held* entry = nullptr;
  };
  /// The held packets of a slot.
  struct Window {
    std::array<Page*, kPages> pages{};  // by DSN / kPageSize, modulo kPages
    Page*& page(Dsn dsn) { return pages[pageOf(dsn) % kPages]; }
  };
  /// All entries, oldest first: lists[true] those of slots of datagrams, lists[false] the others.
  struct Waiting {
    std::array<IntrusiveList<Held, &Held::byArrival>, 2> lists;
    bool empty() const { return !oldest(); }
    Held* newest(bool isDatagram) const { return lists[isDatagram].back(); }
    Time due(bool isDatagram, Duration time) const {
      return lists[isDatagram].empty() ? kNever : lists[isDatagram].front()->arrived + time;
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
    bool isDatagram = false;        // waits for `patience` instead of holdTime, and is paced
    ReleaseQueue::PacedFlow paced;  // used only if isDatagram
    size_t held = 0;                // packets held
    Window* window = nullptr;       // while packets are held
    Marks* marks = nullptr;         // while there are marks
    Time used;
    ReleaseQueue::PacedFlow* pace() { return isDatagram ? &paced : nullptr; }
    /// Whether it has held packets, marks, or packets that wait for their portion.
    bool isHolding() const { return held > 0 || marks || paced.waits(); }
    Page* page(Dsn dsn) { return window ? window->page(dsn) : nullptr; }
    /// The first DSN beyond the pages of the slot, which begin with the page of the hole.
    Dsn reach() const { return firstOf(pageOf(history.next()) + kPages); }
    bool reaches(Dsn dsn) const { return pageOf(dsn) - pageOf(history.next()) < kPages; }
  };
  /// What is known of a slot for the whole life of the session.
  struct TableEntry {
    Dsn next{};                  // its hole when the record was freed
    std::unique_ptr<Slot> slot;  // nullptr: freed, or never used
  };
  static constexpr size_t kTablePage = 64;
  using TablePage = std::array<TableEntry, kTablePage>;
  const TableEntry* entryOf(FlowNumber slot) const;
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
  void enforceBounds();
  void count(Drop cause, uint64_t n = 1) { drops_[static_cast<size_t>(cause)] += n; }

  ResequencerOptions options_;
  std::vector<std::unique_ptr<TablePage>> table_;
  size_t tablePages_ = 0;  // pages in use
  size_t slots_ = 0;       // slots with a record
  ObjectPool<Held> heldPool_;
  ObjectPool<Page, 16> pagePool_;
  ObjectPool<Window, 4> windowPool_;
  ObjectPool<Marks, 4> marksPool_;
  Waiting waiting_;
  size_t entries_ = 0;
  size_t held_ = 0;  // held packets
  size_t heldBytes_ = 0;
  size_t heldFootprint_ = 0;  // of the held packets, as whole buffers
  Time lastHeld_ = Time::min();
  ReleaseQueue out_;  // packets to deliver
  DropCounts drops_{};
};

/// A packet less than this many DSNs above the hole is held, wherever in its page the hole is. It
/// is announced to the peer (PARAMS, heldSpan).
inline constexpr uint64_t kGuaranteedSpan = Resequencer::kSpan - 63;

}  // namespace braid
