#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "tunnel/subflow/sent_packets.h"

namespace braid {

/// When a sent packet counts as lost: RFC 9002 section 6.1, with the reordering window of RFC 8985 once a
/// loss proved spurious. The packets themselves are in the sent-map, which each call is given.
class LossDetector {
 public:
  /// RFC 9002 section 6.1.1.
  static constexpr uint64_t kPacketThreshold = 3;
  /// RFC 9002 section 6.1.2: 9/8.
  static constexpr int kTimeThresholdNumerator = 9;
  static constexpr int kTimeThresholdDenominator = 8;
  /// RFC 9002 section 6.1.2.
  static constexpr Duration kGranularity = 1ms;
  /// Loss episodes without a spurious one after which the window shrinks again (RFC 8985 section 6.2 step 4).
  static constexpr int kPersist = 16;

  /// `pn` is newly acknowledged.
  void onAcked(PacketNumber pn) {
    if (!largestAcked_ || pn > *largestAcked_) largestAcked_ = pn;
  }
  std::optional<PacketNumber> largestAcked() const { return largestAcked_; }

  /// Calls onLost(pn, SentPacket&) for each packet in flight that now counts as lost, oldest first; the
  /// callee sets its state. Sets lossTime() to when the next one may. Looks at those and one more. `sent` is the
  /// sent-map, or one that counts for a test.
  template <typename Packets, typename OnLost>
  void detect(Packets& sent, Duration latest, Duration srtt, Duration minRtt, Time now, OnLost&& onLost) {
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
  /// How long after its sending a packet is lost once a later one was acknowledged.
  Duration timeThreshold(Duration latest, Duration srtt, Duration minRtt) const {
    Duration base = std::max(latest, srtt);
    Duration wait = base * kTimeThresholdNumerator / kTimeThresholdDenominator;
    if (steps_ > 0) wait = std::max(wait, base + std::min(steps_ * minRtt / 4, srtt));
    return std::max(wait, kGranularity);
  }
  /// Reordering was seen lately: losses are declared by time only.
  bool seesReordering() const { return steps_ > 0; }

 private:
  /// So many later packets have left up to the one that was acknowledged; a number that was left out is none.
  bool isOvertaken(PacketNumber pn, const SentPackets& sent) const {
    PacketNumber enough = pn + kPacketThreshold;
    if (*largestAcked_ != enough) return *largestAcked_ > enough;
    return !sent.anySkipped(pn, enough);
  }

  std::optional<PacketNumber> largestAcked_;
  Time lossTime_ = kNever;
  int steps_ = 0;  ///< quarters of the minimum RTT that reordering has earned
  int persist_ = 0;
};

}  // namespace braid
