#pragma once

// The data ledger: which inner packet is delivered by any means, which must be sent again, which is given up.
// The subflow ledger (sent_packets.h) says what became of datagrams; this one says what became of data.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/lane/drop_observer.h"
#include "tunnel/wire/frames.h"

namespace braid {

struct Flow;

/// One inner packet on its way, from its first datagram until no sent datagram remembers it.
struct Datum {
  Packet packet;  ///< the inner packet; empty once delivered or given up
  Flow* flow = nullptr;
  uint64_t dsn = 0;
  Time firstSent;
  uint32_t refs = 0;    ///< sent datagrams that remember it, and the repair queue
  uint16_t slot = 0;    ///< flow number on the wire
  uint16_t copies = 0;  ///< datagrams in flight that carry it, on subflows that are not silent
  uint8_t subflow = 0;  ///< the subflow it last went on
  bool reliable = false;
  bool done = false;             ///< delivered or given up
  bool queued = false;           ///< waits in the repair queue
  bool moved = false;            ///< the subflow it last went on has fallen silent
  bool copied = false;           ///< a copy went out before it was known lost: no second one does
  bool coded = false;            ///< it is in a coding block
  bool delivered = false;        ///< done, and not given up
  Time answerDue = Time::min();  ///< when the peer's word on its copy or parity should be here
  uint64_t pn = 0;               ///< of the datagram it last went in, on `subflow`
  Datum* older = nullptr;        ///< of its flow, by DSN, while not done
  Datum* newer = nullptr;
  Datum* previous = nullptr;
  Datum* next = nullptr;
};

class DataLedger {
 public:
  /// Later than this a datagram (UDP, ICMP) is of no use to a call or a game.
  static constexpr Duration kTimely = 200ms;

  /// TCP packets are repaired for `repairTime` after their first sending. `observer` must outlive it;
  /// nullptr: none.
  explicit DataLedger(Duration repairTime, DropObserver* observer = nullptr)
      : repairTime_(repairTime), observer_(observer) {}
  void setRepairTime(Duration d) { repairTime_ = d; }

  /// A new inner packet about to be sent as `flow`'s number `dsn`.
  Datum* create(Flow& flow, uint16_t slot, uint64_t dsn, bool reliable, Packet packet, Time now);
  /// The datagram `pn` that carries it leaves. Takes it off the repair queue.
  void onSent(Datum* datum, uint8_t subflow, uint64_t pn);
  /// A copy of it leaves, in protection: where it last went stays what it was.
  void onCopied(Datum* datum, Time answerDue = Time::min());
  /// It came by other means than its datagrams, which may still be acknowledged or lost.
  void onRecovered(Datum* datum) {
    if (!datum->done) finish(datum, true);
  }
  /// Somebody else remembers it too, until forget().
  void hold(Datum* datum) { ++datum->refs; }
  /// A datagram that carried it arrived. `counted`: that datagram still counted as in flight.
  void onDelivered(Datum* datum, bool counted);
  /// A datagram that carried it is lost: it is queued for repair when no other one is in flight, or only one
  /// in protection, whose fate need not be awaited for longer than until answerDue.
  /// `copy`: what is lost was the one in protection.
  void onLost(Datum* datum, Time now, bool copy = false);
  /// Its datagram may still arrive, but do not wait: send a copy elsewhere unless another is on its way. That
  /// datagram no longer counts as in flight: for it, onLost() must not follow and onDelivered() is not
  /// `counted`. A timely datagram moves only while it is younger than kTimely, else it is given up.
  /// `copy`: it was one, and says nothing of the path that the datum itself went on.
  void onMoved(Datum* datum, Time now, bool copy = false);
  /// A sent datagram forgets it.
  void forget(Datum* datum);

  /// The next packet to send again; nullptr when there is none. Expired ones are given up on the way.
  Datum* nextRepair(Time now);
  /// The one that waits behind it.
  static Datum* repairAfter(const Datum* datum) { return datum->next; }
  /// It can not be sent: count it and tell the receiver not to wait.
  void giveUp(Datum* datum, Drop cause);
  /// Gives up everything queued for repair.
  void giveUpAll(Drop cause);

  /// Packets given up that the receiver has not been told of.
  std::optional<SkipFrame> takeSkip();
  bool hasSkips() const { return !skips_.empty(); }

  /// Nobody waits for it any more.
  bool isTooLate(const Datum& datum, Time now) const {
    return now - datum.firstSent > (datum.reliable ? repairTime_ : kTimely);
  }

  size_t live() const { return live_; }
  size_t queued() const { return queuedCount_; }
  /// How often something was queued for repair or left that queue.
  uint64_t repairChanges() const { return repairChanges_; }
  const DropCounts& drops() const { return drops_; }

 private:
  void finish(Datum* datum, bool delivered);
  void addSkip(const SkipFrame& skip);
  void enqueue(Datum* datum);
  void dequeue(Datum* datum);

  Duration repairTime_;
  DropObserver* observer_;
  std::vector<std::unique_ptr<Datum[]>> slabs_;
  std::vector<Datum*> free_;
  Datum* head_ = nullptr;
  Datum* tail_ = nullptr;
  size_t live_ = 0;
  size_t queuedCount_ = 0;
  uint64_t repairChanges_ = 0;
  std::vector<SkipFrame> skips_;
  DropCounts drops_{};
};

}  // namespace braid
