#pragma once

// What became of the data that a session has sent. Each session has one data tracker. Its subflows
// report what became of datagrams; the tracker concludes what that means for the data in them.
//
// Terms:
//   unit     DataUnit: one inner packet or one range of a stream's bytes. It is the smallest piece
//            that is sent, repaired or given up as a whole. Its fields are in data_unit.h.
//   slot     the flow number on the wire. DSN: the number of an inner packet in its slot.
//   carrier  a datagram in flight that holds the unit. When its path falls silent it stops being
//            one for good, even if the path speaks again.
//   repair   to send a unit again after its loss. Lost units wait in the repair queue.
//   moved    taken off a path that fell silent, to be repaired on another one (MPTCP: reinjected),
//            although its datagram is not known to be lost.
//   copy     the only second datagram with the unit, sent for protection before a loss is known.
//   lane     supplier of a flow's data (drr.h).
//   done     delivered or given up. A unit becomes done once and remains so.
//
// Life of a unit:
//   create(), onSent()    DataSender sends it for the first time: state kInFlight.
//   onCopied(), onCoded() protection (tunnel/fec): a copy is sent, or the unit enters a block
//                         whose parity will be sent. The state stays.
//   onLost(), onMoved()   a subflow's InFlightTracker reports it: state kLost, and the unit is
//                         queued for repair, unless only the copy is lost (onLost()).
//   onSent()              DataSender takes it from nextRepair() and sends it again: kInFlight.
//   onDelivered(), onRecovered()      the peer has it: kDelivered.
//   giveUp(), takeBack()  nobody waits for it any more: kAbandoned.
//
// How long a unit is repaired depends on its flow's Delivery (flow_kind.h): TCP for the repair
// time, ordered datagrams (QUIC, VPNs) for the patience, others for kTimely. A unit of a stream is
// repaired as long as the stream lives.
//
// When a unit is done, its packet returns to the pool and its flow no longer lists it. The record
// itself is freed with its last reference. There is one reference for each datagram that is
// remembered with the unit, one while the unit is in the repair queue, and one for each retain().
// A UnitRef counts as none.
//
// Invariants: a unit is in the repair queue exactly while its state is kLost. A unit that is not
// done has a packet and is in its flow's list. A session may hold units as long as its share of the
// memory quota allows (mayCreate()); sent data cannot be reclaimed.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/containers.h"
#include "base/drop.h"
#include "base/memory.h"
#include "base/memory_quota.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/data_unit.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/wire/frames.h"

namespace braid {

class DataTracker final : private QuotaUser {
 public:
  /// Units of timely flows (calls, games, ICMP) are not repaired once they are older than this:
  /// they are of no use any more. Chosen: what the jitter buffer of a call absorbs.
  static constexpr Duration kTimely = 200ms;

  /// `repairTime`: see setRepairTime(). `events`: gets the packets that were given up as kExpired
  /// or kTooBig, from which ICMP errors and the ack shim (src/ackshim) follow; nullptr: nobody
  /// does. `quota`: counts the packets of units, in buffers; nullptr: no bound. Both must outlive
  /// the tracker.
  explicit DataTracker(Duration repairTime, PacketEvents* events = nullptr,
                       MemoryQuota* quota = nullptr)
      : QuotaUser(quota, Reclaimable::kNo), repairTime_(repairTime), events_(events) {}
  /// Units of reliable flows (TCP) are given up at this age, counted from their first sending, or
  /// at that of setPatience() if it is longer.
  void setRepairTime(Duration d) { repairTime_ = d; }
  /// Units of ordered datagrams are given up at this age, and those of reliable flows not before
  /// it. DataSender sets it from the RTT of the paths (orderPatience() in flow_kind.h).
  void setPatience(Duration d) { patience_ = d; }

  // ---- sending

  /// Whether the quota has room for one more unit. While it has none, new data must wait as it does
  /// for a full window.
  bool mayCreate() const { return hasRoom(1); }
  /// Creates a unit of `flow`. It must be sent at once: onSent() must follow. An inner packet gets
  /// the next DSN of the flow's slot. For a range, offset and frame type are read from Flow::unit,
  /// where the lane wrote them. Ask mayCreate() before.
  UnitRef create(Flow& flow, Packet packet, Time now);
  /// Datagram `pn` of `subflow` is sent with the unit, for the first time or as a repair. The
  /// datagram becomes a carrier and gets a reference. A unit in the repair queue leaves it.
  void onSent(UnitRef unit, SubflowId subflow, PacketNumber pn);
  /// A copy of the unit is sent. It becomes a carrier and gets a reference; the unit's `subflow`
  /// and `pn` do not change. If the unit is lost meanwhile, it is queued, but session/repairs.h
  /// passes over it until `answerDue`, when the peer's report on the copy should have arrived.
  void onCopied(UnitRef unit, Time answerDue = Time::min());
  /// No copy of the unit may be sent: it is too old, or does not fit. No effect after onCopied().
  void forbidCopy(UnitRef unit) {
    if (unit->mayCopy()) unit.unit_->protection = UnitProtection::kRefused;
  }
  /// The unit has entered a coding block. If it is lost it waits as in onCopied(), here for the
  /// block's parity, which may not be sent yet.
  void onCoded(UnitRef unit, Time answerDue);
  /// The unit may not enter a coding block: it is too old. From now on it counts as coded.
  void forbidCoding(UnitRef unit) { setCoded(*unit.unit_); }
  /// Adds a reference. Called by DuplicateQueue, which remembers units that are to be copied.
  void retain(UnitRef unit) { ++unit.unit_->refs; }
  /// Drops a reference: one of retain(), or that of a datagram, when its subflow forgets it. The
  /// last one frees the record; a unit that is not done by then is abandoned without an
  /// announcement.
  void release(UnitRef unit);

  // ---- delivery and loss: one call for each unit of the datagram. Its reference stays until
  // release(). When the last unit of a stream becomes done, the call runs Lane::onAllDone().

  /// A datagram with the unit was acknowledged. `wasCarrier`: neither onLost() nor onMoved() was
  /// called for it before.
  void onDelivered(UnitRef unit, bool wasCarrier);
  /// The peer decoded the unit from parities. Its datagrams remain carriers, and may still be
  /// acknowledged or lost.
  void onRecovered(UnitRef unit);
  /// A carrier of the unit is lost. The unit is queued for repair, or given up if isTooLate(). It
  /// stays in flight if only the copy is lost (`isCopy`) and another carrier is left. If the copy
  /// is the one that is left, the unit is queued, but waits until `answerDue` (onCopied()), even if
  /// the copy is lost then. For a unit that is queued or done only the carrier ends.
  void onLost(UnitRef unit, Time now, bool isCopy = false);
  /// The path of a carrier has fallen silent: like onLost(), except that the unit is repaired
  /// before lost ones (DataUnit::moved). The datagram stops being a carrier, so onLost() must not
  /// follow. `isCopy`: it was the copy; a unit that is queued then is among the lost ones, because
  /// the silence says nothing about the path that the unit itself took.
  void onMoved(UnitRef unit, Time now, bool isCopy = false);
  /// The unit is not sent again: it is too late, too big for all paths (session/repairs.h), or no
  /// path was usable (Session, units in flight). Counts `cause`, gives the
  /// packet to `events` if that is kExpired or kTooBig, and announces to the receiver of TCP or
  /// ordered datagrams that it need not wait (takeSkip()). No effect if the unit is done.
  void giveUp(UnitRef unit, Drop cause);
  /// Abandons all units of the flow that are not done, and calls take(Packet) for each, oldest
  /// first. The receiver is not told. Called when a stream ends, and for TCP flows when Peer ends
  /// or replaces the session (Session::handBack()), so that their packets go to the next one.
  template <typename F>
  void takeBack(Flow& flow, F&& take) {
    while (DataUnit* oldest = oldestOf(flow).unit_) {
      Packet packet = std::move(oldest->packet);
      finish(*oldest, UnitState::kAbandoned);
      take(std::move(packet));
    }
  }
  /// giveUp() for all units in the repair queue. Session calls it when no path was usable during
  /// the repair time, and when it is destroyed, after takeBack().
  void giveUpRepairs(Drop cause);

  // ---- repair

  /// The unit to repair next; nullptr when there is none. Moved units come before lost ones, and
  /// among each the one queued first. Units at the head that are too late are given up. `answerDue`
  /// is not looked at: the caller goes on by repairAfter() from a unit that must wait. The unit
  /// stays in the queue until onSent().
  UnitRef nextRepair(Time now);
  /// The unit behind this one in the repair queue; nullptr at the end.
  static UnitRef repairAfter(UnitRef unit) { return UnitRef(Repairs::next(*unit)); }
  /// When the unit at the head of the repair queue becomes too late; kNever when the queue is empty
  /// or its head is of a stream.
  Time repairExpiresAt() const;
  /// Units in the repair queue.
  size_t queuedRepairs() const { return queued_; }
  /// Whether the repair queue has moved units.
  bool hasMoved() const { return lastMoved_ != nullptr; }
  /// How often a unit has entered or left the repair queue; equal values mean an unchanged queue.
  uint64_t repairChanges() const { return repairChanges_; }
  /// Whether the unit is older than its kind of delivery allows, so that it is not repaired.
  bool isTooLate(const DataUnit& unit, Time now) const {
    return now - unit.firstSent > timeLimit(unit.delivery);
  }
  /// Shortens a stream's range in the repair queue to a packet of at most `size` bytes. The rest
  /// becomes a unit of its own behind it. False, and nothing changes, when the unit is an inner
  /// packet or not queued, or `pool` or quota has no room for the rest.
  bool cut(UnitRef unit, size_t size, PacketPool& pool);

  /// Takes an announcement to the receiver of units that were given up; nullopt when there is none.
  /// At most 256 wait; further ones are dropped, and the receiver's hold time ends its wait.
  std::optional<SkipFrame> takeSkip();
  bool hasSkips() const { return !skips_.empty(); }

  /// Records in memory, including those of units that are done.
  size_t records() const { return data_.inUse(); }
  const DropCounts& drops() const { return drops_; }
  /// Packets that were sent and given up. Those too big for all paths are not among them, because
  /// their sender is told.
  uint64_t undelivered() const;

 private:
  using Repairs = IntrusiveList<DataUnit, &DataUnit::repair>;  // not that of repairs.h

  void reclaim() override {}  // never called: see Reclaimable::kNo
  /// The age at which a unit becomes too late.
  Duration timeLimit(Delivery delivery) const {
    return delivery == Delivery::kStream     ? Duration::max()
           : delivery == Delivery::kReliable ? std::max(repairTime_, patience_)
           : delivery == Delivery::kOrdered  ? patience_
                                             : kTimely;
  }
  static UnitRef oldestOf(const Flow& flow);
  void finish(DataUnit& unit, UnitState state);
  static void setCoded(DataUnit& unit);
  void addSkip(const SkipFrame& skip);
  void enqueue(DataUnit& unit);
  void dequeue(DataUnit& unit);

  Duration repairTime_;
  Duration patience_ = kFirstPatience;
  PacketEvents* events_;
  ObjectPool<DataUnit> data_;
  Repairs repairs_;
  /// In `repairs_`: this unit and all before it were moved when they were queued.
  DataUnit* lastMoved_ = nullptr;
  size_t queued_ = 0;
  uint64_t repairChanges_ = 0;
  std::vector<SkipFrame> skips_;
  DropCounts drops_{};
};

}  // namespace braid
