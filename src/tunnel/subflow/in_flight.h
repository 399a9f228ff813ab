#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "scheduler/rate/rtt.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/subflow/sent_map.h"
#include "tunnel/wire/frames.h"

namespace braid {

/// Decides when a sent packet counts as lost: by RFC 9002 section 6.1, and with the reordering
/// window of RFC 8985 once a loss proved spurious. The packets themselves are in the sent-map,
/// which is an argument of each call.
class LossDetector {
 public:
  /// RFC 9002 section 6.1.1.
  static constexpr uint64_t kPacketThreshold = 3;
  /// RFC 9002 section 6.1.2: 9/8.
  static constexpr int kTimeThresholdNumerator = 9;
  static constexpr int kTimeThresholdDenominator = 8;
  /// RFC 9002 section 6.1.2.
  static constexpr Duration kGranularity = 1ms;
  /// After this many loss episodes without a spurious loss, the reordering window is reset (RFC
  /// 8985 section 6.2 step 4).
  static constexpr int kPersist = 16;

  /// `pn` is newly acknowledged.
  void onAcked(PacketNumber pn) {
    if (!largestAcked_ || pn > *largestAcked_) largestAcked_ = pn;
  }
  std::optional<PacketNumber> largestAcked() const { return largestAcked_; }

  /// Calls onLost(pn, SentPacket&) for each packet in flight that now counts as lost, oldest first;
  /// the callee sets the packet's state. Sets lossTime() to the time of the next possible loss.
  /// Visits the lost packets and one more. `sent` is the sent-map, or a test's sent-map that counts
  /// visits.
  template <typename Packets, typename OnLost>
  void detect(Packets& sent, Duration latest, Duration srtt, Duration minRtt, Time now,
              OnLost&& onLost) {
    lossTime_ = kNever;
    if (!largestAcked_) return;
    Duration wait = timeThreshold(latest, srtt, minRtt);
    bool any = false;
    PacketNumber pn = sent.nextInFlight(sent.first());
    for (; pn < sent.next() && pn < *largestAcked_; pn = sent.nextInFlight(pn + 1)) {
      SentPacket& p = sent.at(pn);
      bool byCount = steps_ == 0 && isOvertaken(pn, sent);
      if (byCount || now >= p.sentAt + wait) {
        onLost(pn, p);
        any = true;
      } else {
        lossTime_ = p.sentAt + wait;  // later packets were sent later
        break;
      }
    }
    if (any && steps_ > 0 && --persist_ == 0) steps_ = 0;
  }
  /// When detect() may find the next loss without another ACK; kNever: not at all.
  Time lossTime() const { return lossTime_; }

  /// A packet declared lost was acknowledged: the path reorders. RFC 8985 section 6.2 step 4.
  void onSpurious() {
    if (steps_ < 4) ++steps_;
    persist_ = kPersist;
  }
  /// The time after its sending at which a packet is lost, once a later one was acknowledged.
  Duration timeThreshold(Duration latest, Duration srtt, Duration minRtt) const {
    Duration base = std::max(latest, srtt);
    Duration wait = base * kTimeThresholdNumerator / kTimeThresholdDenominator;
    if (steps_ > 0) wait = std::max(wait, base + std::min(steps_ * minRtt / 4, srtt));
    return std::max(wait, kGranularity);
  }
  /// Reordering was seen lately: losses are declared by time only.
  bool seesReordering() const { return steps_ > 0; }

 private:
  /// Whether at least kPacketThreshold later packets were sent up to the largest acknowledged one.
  /// A skipped packet number does not count as a packet.
  bool isOvertaken(PacketNumber pn, const SentPackets& sent) const {
    PacketNumber enough = pn + kPacketThreshold;
    if (*largestAcked_ != enough) return *largestAcked_ > enough;
    return !sent.anySkipped(pn, enough);
  }

  std::optional<PacketNumber> largestAcked_;
  Time lossTime_ = kNever;
  int steps_ = 0;  ///< the reordering window, in quarters of the minimum RTT
  int persist_ = 0;
};

/// The in-flight tracker: what one subflow has sent. It keeps the packets by number, the bytes in
/// flight, when a packet counts as lost, and the data units in each packet. It reports the fate of
/// the data units to the data tracker.
///
/// Life of a packet: push(), then acknowledged (onAcked) or lost (detectLosses, loseAll,
/// abandonOld), and finally forgotten (trim, push, abandonOld), oldest first. A lost packet may
/// still be acknowledged. While a packet is in flight, its data may be moved once (moveData,
/// moveOldest, moveAll): it is reinjected on another subflow because the path has fallen silent.
///
/// Invariants: bytes() is the sum over the packets in flight. For each data unit in a remembered
/// packet, the data tracker counts one reference, and one carrier while that packet is in flight
/// and not moved.
class InFlightTracker {
 public:
  /// Most packets that a silent subflow remembers.
  static constexpr uint64_t kMaxSilentSpan = SentPackets::kMaxSpan / 2;

  InFlightTracker(DataTracker& dataTracker, Time now)
      : dataTracker_(dataTracker), progressAt_(now) {}
  /// Forgets the data of all packets.
  ~InFlightTracker();
  InFlightTracker(const InFlightTracker&) = delete;
  InFlightTracker& operator=(const InFlightTracker&) = delete;

  const SentPackets& packets() const { return sent_; }
  SentPacket& packet(PacketNumber pn) { return sent_.at(pn); }
  /// Bytes in flight.
  uint64_t bytes() const { return bytes_; }
  /// Number of the oldest packet in flight; packets().next() when there is none.
  PacketNumber oldest() const;
  const SentPacket* oldestPacket() const;
  /// When an ACK last acknowledged something new or, if later, when a packet was sent while nothing
  /// was in flight.
  Time progressAt() const { return progressAt_; }
  /// When the next packet may count as lost; kNever: not before an ACK.
  Time lossTime() const { return loss_.lossTime(); }
  /// Whether packet `pn` carries data that is neither delivered nor given up.
  bool isDataMissing(PacketNumber pn) const;

  /// A datagram is sent under the next packet number. `tracked`: it is ack-eliciting and in flight
  /// from now on.
  SentPacket& push(size_t bytes, bool tracked, Time now);
  /// Skips the next packet number (see PacketNumberFilter). Returns false when no number is free.
  bool skip(Time now);

  // ---- what an ACK says

  /// Calls onNew(pn, packet) for each remembered packet that was in flight and that this ACK is the
  /// first to cover; within a range, oldest first. Packets that earlier ACKs covered are not
  /// visited again, in whatever order the peer repeats them.
  template <typename OnNew>
  void forEachNew(const AckFrame& ack, OnNew&& onNew);
  /// `pn` is acknowledged for the first time: it was in flight, or counted as lost.
  void onAcked(PacketNumber pn);
  /// An ACK acknowledged something new, or the path has been validated again.
  void onProgress(Time now) { progressAt_ = now; }
  /// Calls onLost(pn, packet) for each packet that counts as lost from now on, oldest first. The
  /// packet's data does not count as lost yet: the callee calls loseData().
  template <typename OnLost>
  void detectLosses(const RttEstimator& rtt, Time now, OnLost&& onLost) {
    loss_.detect(sent_, rtt.latest(), rtt.smoothed(), rtt.windowedMin(), now,
                 [&](PacketNumber pn, SentPacket& p) {
                   setLost(pn, p);
                   onLost(pn, p);
                 });
  }
  /// Forgets settled packets, oldest first. A lost packet is kept for `keep` after its sending,
  /// because its ACK may only be late. From then on, push() of an untracked packet does so, too.
  void trim(Duration keep, Time now);

  // ---- data

  /// The packet is lost: what it carried must be sent again, unless it was moved before.
  void loseData(SentPacket& packet, Time now);
  /// The packet may not arrive: reinjects its data on another subflow as soon as possible.
  void moveData(SentPacket& packet, Time now);
  /// The peer has decoded the data of packet `pn`, which must still be remembered.
  void recoverData(PacketNumber pn);
  /// Gives up the data of all packets: nobody waits for it any more. A repeated call visits only
  /// packets sent since the last one.
  void giveUpData(Drop cause);

  /// Reinjects the data of up to `most` of the oldest in-flight packets not reinjected before.
  /// Returns how many.
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

  /// Reinjects their data. Calls then(pn, packet) for each packet sent since the last call.
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
  /// The route has changed: declares all packets in flight lost, and their data with them. These
  /// losses say nothing about the path, and an ACK that still comes for them is not a sign of
  /// reordering. Calls then(pn, packet) for each.
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
  /// Forgets all but the newest kMaxSilentSpan packets. Forgotten packets that are still in flight
  /// count as lost, because no ACK can be that late; calls onLost(pn, packet) for them.
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

  DataTracker& dataTracker_;
  SentPackets sent_;
  LossDetector loss_;
  uint64_t bytes_ = 0;
  Duration keep_ = Duration::max();  ///< of the last trim()
  PacketNumber movedTo_{};           ///< packets in flight below this number have been moved
  PacketNumber givenUpTo_{};         ///< the data of packets below this number was given up
  Time progressAt_;
};

template <typename OnNew>
void InFlightTracker::forEachNew(const AckFrame& ack, OnNew&& onNew) {
  for (size_t i = 0; i < ack.count; ++i) {
    auto [first, last] = ack.ranges[i];
    if (last >= sent_.next()) continue;  // never sent: the caller refuses such a forged ACK
    for (PacketNumber pn = first; (pn = sent_.nextAwaited(pn, last)) <= last; ++pn) {
      sent_.onNamed(pn);
      onNew(pn, sent_.at(pn));
    }
  }
}

/// How many packets in flight may be reinjected elsewhere because their path has been silent for
/// longer than its RTT and variance explain, but not long enough to be called suspect. When the
/// path has died, that saves a round trip. When the path only jitters, each of these packets may be
/// wasted. So the limit is a small share of what the path carries: a path that stumbles now and
/// then has the whole limit each time, and a path that jitters always costs no more than that
/// share.
class EarlyReinjectionBudget {
 public:
  /// The upper limit: about what a path of 50 Mbit/s and 60 ms has in flight.
  static constexpr uint64_t kMost = 256;
  /// For each kShare packets sent, one more may be reinjected.
  static constexpr uint64_t kShare = 64;

  /// How many packets may be reinjected now that the path has carried `sent` packets in its life.
  size_t left(uint64_t sent) {
    uint64_t earned = (sent - countedTo_) / kShare;
    countedTo_ += earned * kShare;
    left_ = std::min(kMost, left_ + earned);
    return static_cast<size_t>(left_);
  }
  /// `count` packets were reinjected, at most what was left.
  void spend(size_t count) { left_ -= count; }

 private:
  uint64_t left_ = kMost;
  uint64_t countedTo_ = 0;  // packets sent that left_ accounts for
};

}  // namespace braid
