#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "scheduler/rate/rtt.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/subflow/loss_detector.h"
#include "tunnel/subflow/sent_packets.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// What one subflow has sent: its packets by number, the bytes in flight, when a packet counts as lost, and
/// the data in each packet, of whose fate it tells the data ledger.
///
/// Life of a packet: push(), then acknowledged (onAcked) or lost (detectLosses, loseAll, abandonOld), and at
/// last forgotten (trim, push, abandonOld), oldest first. A lost packet may still be acknowledged. Its data may be
/// moved once (move, moveAll) while it is in flight: sent again elsewhere, for the path has fallen silent.
///
/// Invariants: bytes() is the sum over the packets in flight. Of each datum in a remembered packet the ledger
/// counts one reference, and one copy more while that packet is in flight and not moved.
class Flight {
 public:
  /// Packets that a silent subflow remembers.
  static constexpr uint64_t kMaxSilentSpan = SentPackets::kMaxSpan / 2;

  Flight(DataLedger& ledger, Time now) : ledger_(ledger), progressAt_(now) {}
  /// Forgets the data of all packets.
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  const SentPackets& packets() const { return sent_; }
  SentPacket& packet(PacketNumber pn) { return sent_.at(pn); }
  /// Bytes in flight.
  uint64_t bytes() const { return bytes_; }
  /// Number of the oldest packet in flight; packets().next() when there is none.
  PacketNumber oldest() const;
  const SentPacket* oldestPacket() const;
  /// When an ACK last acknowledged something new, or, if later, when the first packet went into empty flight.
  Time progressAt() const { return progressAt_; }
  /// When the next packet may count as lost; kNever: not before an ACK.
  Time lossTime() const { return loss_.lossTime(); }
  /// Whether data of packet `pn` is neither delivered nor given up.
  bool isDataMissing(PacketNumber pn) const;

  /// A datagram leaves under the next packet number. `tracked`: it asks for an ACK, and is in flight from now
  /// on.
  SentPacket& push(size_t bytes, bool tracked, Time now);
  /// The next packet number is left out. False: none is free.
  bool skip(Time now);

  // ---- what an ACK says

  /// Calls onNew(pn, packet) for each remembered packet that was in flight and that this ACK is the first to cover;
  /// in a range the oldest first. What earlier ACKs have covered is not visited again, whatever the order in which the
  /// peer repeats it.
  template <typename OnNew>
  void forEachNew(const AckFrame& ack, OnNew&& onNew);
  /// `pn` is acknowledged for the first time: it was in flight, or counted as lost.
  void onAcked(PacketNumber pn);
  /// An ACK acknowledged something new, or the path is proven anew.
  void onProgress(Time now) { progressAt_ = now; }
  /// Calls onLost(pn, packet) for each packet that counts as lost from now on, oldest first. Its data is not
  /// lost yet: the callee calls loseData().
  template <typename OnLost>
  void detectLosses(const RttEstimator& rtt, Time now, OnLost&& onLost) {
    loss_.detect(sent_, rtt.latest(), rtt.smoothed(), rtt.windowedMin(), now,
                 [&](PacketNumber pn, SentPacket& p) {
                   setLost(pn, p);
                   onLost(pn, p);
                 });
  }
  /// Forgets packets that are settled, the lost ones after `keep`, for their ACK may only be late. From then on push()
  /// does so, too, of what asks for no ACK.
  void trim(Duration keep, Time now);

  // ---- data

  /// The packet is lost: what it carried is to be sent again, unless it was moved before.
  void loseData(SentPacket& packet, Time now);
  /// Whether the packet arrives is in doubt: what it carries is to go elsewhere as soon as possible.
  void moveData(SentPacket& packet, Time now);
  /// The peer has decoded what packet `pn` carried, which is remembered.
  void recoverData(PacketNumber pn);
  /// Nobody waits any more for the data of any packet. Asked again it looks only at what has left since.
  void giveUpData(Drop cause);

  /// The same of the oldest packets in flight that were not moved before, `most` at most. How many there were.
  size_t moveOldest(size_t most, Time now) {
    size_t count = 0;
    PacketNumber pn = sent_.nextInFlight(movedTo_);
    for (; count < most && pn < sent_.next(); pn = sent_.nextInFlight(pn + 1)) {
      count += !sent_.at(pn).moved;
      moveData(sent_.at(pn), now);
    }
    return count;
  }

  // ---- all packets in flight, oldest first

  /// Moves their data; calls then(pn, packet) for each that has left since it was last called.
  template <typename Then>
  void moveAll(Time now, Then&& then) {
    PacketNumber pn = sent_.nextInFlight(movedTo_);
    for (; pn < sent_.next(); pn = sent_.nextInFlight(pn + 1)) {
      SentPacket& p = sent_.at(pn);
      moveData(p, now);
      then(pn, p);
    }
    movedTo_ = sent_.next();
  }
  /// The route is another one. Loses them with their data, which says nothing of the path; an ACK that comes for them yet
  /// is no sign of reordering. Calls then(pn, packet) for each.
  template <typename Then>
  void loseAll(Time now, Then&& then) {
    PacketNumber pn = sent_.nextInFlight(sent_.first());
    for (; pn < sent_.next(); pn = sent_.nextInFlight(pn + 1)) {
      SentPacket& p = sent_.at(pn);
      setLost(pn, p);
      p.ofOldRoute = true;
      loseData(p, now);
      then(pn, p);
    }
  }
  /// Forgets all but the latest kMaxSilentSpan packets; calls onLost(pn, packet) for those in flight. What is
  /// older than any late ACK is lost.
  template <typename OnLost>
  void abandonOld(Time now, OnLost&& onLost) {
    while (sent_.next() - sent_.first() > kMaxSilentSpan) {
      SentPacket& p = sent_.at(sent_.first());
      if (p.state == SentPacket::State::kInFlight) {
        setLost(sent_.first(), p);
        loseData(p, now);
        onLost(sent_.first(), p);
      }
      popFront();
    }
  }

 private:
  void setLost(PacketNumber pn, SentPacket& packet) {
    sent_.setState(pn, SentPacket::State::kLost);
    bytes_ -= packet.bytes;
  }
  void forgetSettled(Time now);
  void popFront();

  DataLedger& ledger_;
  SentPackets sent_;
  LossDetector loss_;
  uint64_t bytes_ = 0;
  Duration keep_ = Duration::max();  ///< of the last trim()
  PacketNumber movedTo_{};           ///< what is in flight below it has been moved
  PacketNumber givenUpTo_{};         ///< of no packet below it is the data waited for
  Time progressAt_;
};

template <typename OnNew>
void Flight::forEachNew(const AckFrame& ack, OnNew&& onNew) {
  for (size_t i = 0; i < ack.count; ++i) {
    auto [first, last] = ack.ranges[i];
    if (last >= sent_.next()) continue;  // forged: the caller has seen to that
    for (PacketNumber pn = first; (pn = sent_.nextAwaited(pn, last)) <= last; ++pn) {
      sent_.onNamed(pn);
      onNew(pn, sent_.at(pn));
    }
  }
}

}  // namespace braid
