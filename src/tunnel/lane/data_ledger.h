#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/budget.h"
#include "base/drop.h"
#include "base/intrusive_list.h"
#include "base/packet.h"
#include "base/stock.h"
#include "base/time.h"
#include "tunnel/lane/datum.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// The data ledger: which inner packet is delivered by any means, which must be sent again, which is given up.
/// The sent-map of a subflow (sent_packets.h) says what became of datagrams; the ledger says what became of data.
///
/// A datum is created when its packet first leaves. Every datagram that carries it, whoever holds it and the
/// repair queue count as references; a datagram gives its one back with forget(). A datum is done, once, when it
/// is delivered or given up; then its packet goes back to the pool and it is no longer of its flow. The entry goes
/// when the last reference does. In between it is queued for repair whenever no datagram in flight carries it, and
/// leaves that queue when it is sent again or done.
///
/// The ledger alone writes a datum; what others learn of one they tell it.
class DataLedger final : private Keeper {
 public:
  /// Later than this a datagram (UDP, ICMP) is of no use to a call or a game.
  static constexpr Duration kTimely = 200ms;

  /// TCP packets are repaired for `repairTime` after their first sending. `observer` must outlive the ledger;
  /// nullptr: none. `budget`: of packets that were sent, nullptr: none.
  explicit DataLedger(Duration repairTime, DropObserver* observer = nullptr, Budget* budget = nullptr)
      : Keeper(budget), repairTime_(repairTime), observer_(observer) {}
  void setRepairTime(Duration d) { repairTime_ = d; }
  /// Ordered datagrams are repaired for so long after their first sending, see orderPatience().
  void setPatience(Duration d) { patience_ = d; }

  // ---- what leaves

  /// There is room for one more packet. While there is none, new data waits as it does for a full window: what has
  /// been sent cannot be taken back.
  bool mayCreate() const { return hasRoom(1); }
  /// A new inner packet of `flow` is about to be sent: it gets the next number of the flow's slot.
  const Datum* create(Flow& flow, Packet packet, Time now);
  /// The datagram `pn` that carries the datum leaves. Takes the datum off the repair queue.
  void onSent(const Datum* datum, SubflowId subflow, PacketNumber pn);
  /// A copy of the datum leaves, in protection: where it last went stays what it was.
  void onCopied(const Datum* datum, Time answerDue = Time::min());
  /// No copy of the datum is wanted any more: it is too old, or there was no room.
  void refuseCopy(const Datum* datum) { own(datum).copied = true; }
  /// The datum is in a coding block whose first parity leaves.
  void onCoded(const Datum* datum, Time answerDue);
  /// The datum is too old for a block.
  void refuseCode(const Datum* datum) { own(datum).coded = true; }
  /// Somebody else remembers the datum too, until forget().
  void hold(const Datum* datum) { ++own(datum).refs; }
  /// Who remembered the datum forgets it.
  void forget(const Datum* datum);

  // ---- what became of it

  /// A datagram that carried the datum arrived. `counted`: that datagram still counted as in flight.
  void onDelivered(const Datum* datum, bool counted);
  /// The datum came by other means than its datagrams, which may still be acknowledged or lost.
  void onRecovered(const Datum* datum);
  /// A datagram that carried the datum is lost: the datum is queued for repair when no other one is in flight, or
  /// only one in protection, whose fate need not be awaited for longer than until answerDue.
  /// `copy`: what is lost was the one in protection.
  void onLost(const Datum* datum, Time now, bool copy = false);
  /// The datum's datagram may still arrive, but do not wait: send a copy elsewhere unless another is on its way.
  /// That datagram no longer counts as in flight: for it, onLost() must not follow and onDelivered() is not
  /// `counted`. A timely datagram moves only while it is younger than kTimely, else it is given up.
  /// `copy`: it was one, and says nothing of the path that the datum itself went on.
  void onMoved(const Datum* datum, Time now, bool copy = false);
  /// The datum can not be sent: count it and tell the receiver not to wait.
  void giveUp(const Datum* datum, Drop cause);
  /// What the flow has sent and is not done goes to take(Packet), in the order of its numbers. The peer is not told:
  /// the session ends.
  template <typename F>
  void takeBack(Flow& flow, F&& take) {
    while (const Datum* oldest = oldestOf(flow)) {
      Packet packet = std::move(own(oldest).packet);
      finish(own(oldest), false);
      take(std::move(packet));
    }
  }
  /// Cuts the range of a stream that is queued for repair, so that its packet has at most `size` bytes: what is left is
  /// queued behind it. False when there is no room for that, or nothing to be cut.
  bool cut(const Datum* datum, size_t size, PacketPool& pool);
  /// Gives up everything queued for repair.
  void giveUpAll(Drop cause);

  // ---- what is to be sent again

  /// The next packet to send again; nullptr when there is none. What was moved off a silent path comes before what is
  /// lost. Expired ones are given up on the way.
  const Datum* nextRepair(Time now);
  /// When that one expires if it is not sent before; kNever: there is none, or it never does.
  Time repairExpiresAt() const;
  /// The one that waits behind it.
  static const Datum* repairAfter(const Datum* datum) { return Repairs::next(*datum); }
  size_t queued() const { return queued_; }
  /// Some of it was moved off a silent path.
  bool hasMoved() const { return lastMoved_ != nullptr; }
  /// How often something was queued for repair or left that queue.
  uint64_t repairChanges() const { return repairChanges_; }
  /// Nobody waits for the datum any more.
  bool isTooLate(const Datum& datum, Time now) const { return now - datum.firstSent > worth(datum.delivery); }

  /// Packets given up that the receiver has not been told of.
  std::optional<SkipFrame> takeSkip();
  bool hasSkips() const { return !skips_.empty(); }

  /// Data that somebody remembers.
  size_t live() const { return data_.inUse(); }
  const DropCounts& drops() const { return drops_; }

 private:
  using Repairs = IntrusiveList<Datum, &Datum::repair>;

  /// Every datum was made here and is not const.
  static Datum& own(const Datum* datum) { return const_cast<Datum&>(*datum); }
  void giveBack() override {}  // Keeper
  Duration worth(Delivery delivery) const {
    return delivery == Delivery::kStream     ? Duration::max()
           : delivery == Delivery::kReliable ? repairTime_
           : delivery == Delivery::kOrdered  ? patience_
                                             : kTimely;
  }
  static const Datum* oldestOf(const Flow& flow);
  void finish(Datum& datum, bool delivered);
  void addSkip(const SkipFrame& skip);
  void enqueue(Datum& datum);
  void dequeue(Datum& datum);

  Duration repairTime_;
  Duration patience_ = kFirstPatience;
  DropObserver* observer_;
  Stock<Datum> data_;
  Repairs repairs_;
  Datum* lastMoved_ = nullptr;  ///< in `repairs_`: all up to it were moved when they were queued
  size_t queued_ = 0;
  uint64_t repairChanges_ = 0;
  std::vector<SkipFrame> skips_;
  DropCounts drops_{};
};

}  // namespace braid
