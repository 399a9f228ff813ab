#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/containers.h"
#include "base/drop.h"
#include "base/memory.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/queue/data_unit.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// The data tracker knows of every data unit (inner packet or stream range) whether it is
/// delivered, by whatever means, must be sent again, or is given up. The sent-map of a subflow
/// (sent_map.h) says what became of datagrams; the data tracker says what became of data.
///
/// A data unit is created when its packet is first sent. It is done, once, when it is delivered or
/// given up; then its packet returns to the pool, and the unit is removed from its flow. Until it
/// is done, the unit is queued for repair whenever no in-flight datagram carries it, and leaves
/// that queue when it is sent again.
///
/// References keep a unit in memory: one for every datagram that carries it, one for every hold(),
/// and one while it is in the repair queue. A datagram releases its reference with forget(). The
/// unit is freed with its last reference.
///
/// Only the data tracker writes to a data unit. Other code tells it what it learns of a unit.
class DataTracker final : private QuotaUser {
 public:
  /// A timely datagram (UDP, ICMP) that is older than this is of no use to a call or a game, and is
  /// not sent again. Chosen: what the jitter buffer of a call absorbs.
  static constexpr Duration kTimely = 200ms;

  /// TCP packets are repaired until `repairTime` after they were first sent, or longer on a slow
  /// path, see setPatience(). `events`: gets the
  /// packets that expired or are too large; nullptr: nobody does. `budget`: memory quota of sent
  /// packets; nullptr for none.
  explicit DataTracker(Duration repairTime, PacketEvents* events = nullptr,
                       MemoryQuota* budget = nullptr)
      : QuotaUser(budget), repairTime_(repairTime), events_(events) {}
  void setRepairTime(Duration d) { repairTime_ = d; }
  /// Ordered datagrams are repaired until `d` after they were first sent, see orderPatience(). TCP
  /// packets are repaired at least that long.
  void setPatience(Duration d) { patience_ = d; }

  // ---- sending

  /// Whether there is memory for one more packet. While there is none, new data waits as it does
  /// for a full window, because data that was sent cannot be taken back.
  bool mayCreate() const { return hasRoom(1); }
  /// A new unit of `flow` is about to be sent. An inner packet gets the next number of the flow's
  /// slot, a stream range its offset.
  UnitRef create(Flow& flow, Packet packet, Time now);
  /// The datagram `pn` that carries the unit is sent. Takes the unit off the repair queue.
  void onSent(UnitRef unit, SubflowId subflow, PacketNumber pn);
  /// A copy of the unit is sent for protection. The unit's `subflow` and `pn` do not change.
  void onCopied(UnitRef unit, Time answerDue = Time::min());
  /// No copy of the unit may be sent any more: it is too old, or it does not fit the datagram.
  void refuseCopy(UnitRef unit) {
    if (unit->mayCopy()) unit.unit_->protection = UnitProtection::kRefused;
  }
  /// The unit is in a coding block, and the first parity of the block is sent.
  void onCoded(UnitRef unit, Time answerDue);
  /// The unit is too old for a coding block.
  void refuseCode(UnitRef unit) { setCoded(*unit.unit_); }
  /// Adds a reference to the unit, which forget() releases.
  void hold(UnitRef unit) { ++unit.unit_->refs; }
  /// Releases a reference to the unit.
  void forget(UnitRef unit);

  // ---- delivery and loss

  /// A datagram that carried the unit arrived. `counted`: this datagram still counted as in flight.
  void onDelivered(UnitRef unit, bool counted);
  /// The peer got the unit without its datagrams: it decoded it. The datagrams may still be
  /// acknowledged or lost.
  void onRecovered(UnitRef unit);
  /// A datagram that carried the unit is lost. The unit is queued for repair when no other datagram
  /// with it is in flight, or only its copy; then the repair waits for news of the copy until
  /// answerDue. A unit that is too old is given up instead (isTooLate()). `copy`: the lost datagram
  /// was the copy.
  void onLost(UnitRef unit, Time now, bool copy = false);
  /// The datagram that carried the unit may still arrive, but its subflow is silent: queues the
  /// unit to be sent on another subflow unless another datagram with it is in flight. The old
  /// datagram no longer counts as in flight: onLost() must not follow for it, and its onDelivered()
  /// is not `counted`. A unit that is too old is given up instead (isTooLate()).
  /// `copy`: the datagram was a copy, which says nothing about the path that the unit itself was
  /// sent on.
  void onMoved(UnitRef unit, Time now, bool copy = false);
  /// The unit cannot be sent any more: counts the drop, reports it, and tells the receiver not to
  /// wait.
  void giveUp(UnitRef unit, Drop cause);
  /// Calls take(Packet) for each unit of the flow that was sent and is not done, in the order of
  /// their numbers. The peer is not told, because the session or the stream ends.
  template <typename F>
  void takeBack(Flow& flow, F&& take) {
    while (DataUnit* oldest = oldestOf(flow).unit_) {
      Packet packet = std::move(oldest->packet);
      finish(*oldest, UnitState::kAbandoned);
      take(std::move(packet));
    }
  }
  /// Cuts a stream range that is queued for repair, so that its packet has at most `size` bytes.
  /// The rest is queued behind it. False when no memory is left for the rest, or the unit cannot be
  /// cut.
  bool cut(UnitRef unit, size_t size, PacketPool& pool);
  /// Gives up everything queued for repair.
  void giveUpAll(Drop cause);

  // ---- repair

  /// The next unit to send again; nullptr when there is none. Units that were moved off a silent
  /// path come before lost ones. Expired units at the head of the queue are given up.
  UnitRef nextRepair(Time now);
  /// When the head of the repair queue expires; kNever when the queue is empty or its head never
  /// does.
  Time repairExpiresAt() const;
  /// The unit behind this one in the repair queue.
  static UnitRef repairAfter(UnitRef unit) { return UnitRef(Repairs::next(*unit)); }
  size_t queued() const { return queued_; }
  /// Whether the repair queue has units that were moved off a silent path.
  bool hasMoved() const { return lastMoved_ != nullptr; }
  /// How many times a unit has entered or left the repair queue.
  uint64_t repairChanges() const { return repairChanges_; }
  /// Whether the unit is older than its kind of delivery allows: nothing waits for it any more.
  bool isTooLate(const DataUnit& unit, Time now) const {
    return now - unit.firstSent > worth(unit.delivery);
  }

  /// Takes the next announcement of units that were given up and that the receiver still expects.
  std::optional<SkipFrame> takeSkip();
  bool hasSkips() const { return !skips_.empty(); }

  /// Units in memory.
  size_t live() const { return data_.inUse(); }
  const DropCounts& drops() const { return drops_; }

 private:
  using Repairs = IntrusiveList<DataUnit, &DataUnit::repair>;

  void reclaim() override {}  // QuotaUser: sent data cannot be taken back
  Duration worth(Delivery delivery) const {
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
