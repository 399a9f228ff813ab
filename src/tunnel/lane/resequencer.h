#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bit_ring.h"
#include "base/drop.h"
#include "base/intrusive_list.h"
#include "base/packet.h"
#include "base/stock.h"
#include "base/time.h"
#include "tunnel/lane/delivery.h"
#include "tunnel/lane/duplicate_filter.h"
#include "tunnel/lane/lane_options.h"
#include "tunnel/lane/release_queue.h"
#include "tunnel/wire/numbers.h"

namespace braid {

struct ResequencerOptions {
  Duration holdTime = 500ms;           ///< longest wait of a packet behind a hole
  size_t holdBytes = 12 << 20;         ///< of all slots together, whole buffers (Packet::footprint)
  Duration patience = kFirstPatience;  ///< the same for the slots of ordered datagrams
  size_t maxFlows = 4096;              ///< slots are below it; at most 32768
};
ResequencerOptions resequencerOptions(const LaneOptions& options);

/// Puts the packets of every ordered flow slot of a session back into order. A slot's DSN counts its packets
/// from 0 and never restarts. Packets that are in order pass at once. Packets behind a hole are held until
///
///   - the hole is filled, or skipped by the sender;
///   - one of them has waited for holdTime, or for the patience in a slot of datagrams (kOrderedDatagramFlow): then it
///     goes, with all of its slot before it;
///   - the session holds more than holdBytes, or more packets and marks than maxHeld(): then the one that has waited
///     longest goes, with all of its slot before it (Drop::kHoldOverflow counts them);
///   - one arrives that is kSpan ahead of the hole: then the slot moves on (counted the same).
///
/// Ordered datagrams that were held, and those of their slot behind them, leave in portions, see ReleaseQueue: a few
/// milliseconds later at most.
///
/// A packet that arrives after its hole was given up is delivered late, once. A hole in one slot delays no
/// other slot. What is to be delivered is taken with poll(), after every call of another method.
///
/// Memory: a table entry of 16 bytes for each slot that was ever used, in pages of 64; a record for each slot in use,
/// which forget() takes back; and places for what is held, which shrink when nothing is.
class Resequencer {
 public:
  /// DSNs from the hole on that a slot can hold, in pages of 64: 64 pages, the one of the hole included.
  static constexpr uint64_t kSpan = 4096;

  explicit Resequencer(const ResequencerOptions& options);
  ~Resequencer();
  Resequencer(const Resequencer&) = delete;
  Resequencer& operator=(const Resequencer&) = delete;

  void setOptions(const ResequencerOptions& options) { options_ = options; }

  /// A packet of an ordered slot; dsn is below 2^62.
  void onPacket(FlowNumber slot, Dsn dsn, Packet packet, Time now);
  /// The sender gave up these packets, count of them from `first` on: nothing waits for them. Takes a step for each
  /// 64 of them that are within kSpan, and one for each packet that goes out, whatever the peer has skipped before.
  void skip(FlowNumber slot, Dsn first, uint64_t count, Time now);
  void onTimer(Time now);
  /// Buffers are short: releases all portions, and what has waited longest, counted as kHoldOverflow.
  void relieve();
  /// Forgets what was delivered of slots that hold nothing and were not used after `before`. What is below the next DSN
  /// of such a slot counts as delivered. The places of what is held shrink when nothing was held since.
  void forget(Time before);
  /// Releases all that is held, counted as kHoldOverflow, and forgets all slots.
  void clear();
  /// When onTimer() has something to release; kNever when nothing is held.
  Time nextDeadline() const {
    return std::min(
        {waiting_.due(false, options_.holdTime), waiting_.due(true, options_.patience), out_.nextDeadline()});
  }
  /// The next packet to deliver.
  bool poll(Packet& out) { return out_.poll(out); }

  /// The first DSN that the slot has neither delivered nor given up; 0 for a slot without packets.
  Dsn next(FlowNumber slot) const;
  /// Those that leave in portions included.
  size_t heldPackets() const { return held_ + out_.waiting(); }
  /// Bytes of memory, without the packets.
  size_t footprint() const;
  /// How much it grows by the next packet of this slot, but for places of what is held.
  size_t growth(FlowNumber slot) const;
  size_t heldBytes() const { return heldBytes_; }
  /// Packets held, and slots with skip marks.
  size_t entries() const { return entries_; }
  /// Bound on entries(), whatever their size. Ours: the bookkeeping of so many takes less memory than holdBytes.
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
    uint64_t present = 0;  // a bit per entry
    std::array<Held*, kPageSize> entries{};
  };
  /// The DSNs of a slot above its hole that will not come. They wait as one entry, from when the last one was added.
  struct Marks {
    BitRing<kSpan> bits;
    size_t count = 0;
    Held* entry = nullptr;
  };
  struct Window {
    std::array<Page*, kPages> pages{};  // by DSN / kPageSize, modulo
    Page*& page(Dsn dsn) { return pages[pageOf(dsn) % kPages]; }
  };
  /// What is held of slots with much patience and of those with little, each in the order of time.
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
    bool brief = false;         // with little patience
    ReleaseQueue::Paced paced;  // used while it is brief
    size_t held = 0;            // packets
    Window* window = nullptr;   // while some are held
    Marks* marks = nullptr;     // while there are some
    Time used;
    ReleaseQueue::Paced* pace() { return brief ? &paced : nullptr; }
    /// Packets of it are here, or marks.
    bool isHolding() const { return held > 0 || marks || paced.waits(); }
    Page* page(Dsn dsn) { return window ? window->page(dsn) : nullptr; }
    /// The first DSN that the pages, which begin with that of the hole, do not hold.
    Dsn reach() const { return firstOf(pageOf(history.next()) + kPages); }
    bool reaches(Dsn dsn) const { return pageOf(dsn) - pageOf(history.next()) < kPages; }
  };
  /// What is known of a slot for as long as the session lives.
  struct Entry {
    Dsn next{};                  // of the time when it was forgotten
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
  size_t tablePages_ = 0;  // that there are
  size_t slots_ = 0;       // that are not forgotten
  Stock<Held> heldStock_;
  Stock<Page, 16> pageStock_;
  Stock<Window, 4> windowStock_;
  Stock<Marks, 4> marksStock_;
  Waiting waiting_;     // of all slots
  size_t entries_ = 0;  // packets, and slots with marks
  size_t held_ = 0;     // packets
  size_t heldBytes_ = 0;
  size_t heldFootprint_ = 0;  // with whole buffers
  Time lastHeld_ = Time::min();
  ReleaseQueue out_;  // to be delivered
  DropCounts drops_{};
};

/// DSNs from the hole on that every slot holds, wherever in its page of 64 the hole is.
inline constexpr uint64_t kSurelyHeld = Resequencer::kSpan - 63;

}  // namespace braid
