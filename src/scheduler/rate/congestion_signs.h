#pragma once

// Tells losses by congestion from others. A loss by congestion says that a queue was full. It does
// not say that the path loses packets, so protection does not count it (RFC 9265).

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace braid {

/// When the packets were sent that the paths of one session lost together by congestion. A path
/// that lost all it had sent then has no sign of its own.
class CongestionEpisode {
 public:
  /// A packet sent at `sentAt` was lost by congestion on a path with this smoothed RTT. It belongs
  /// to the episode if covers() says so; else it begins a new one.
  void onLoss(Time sentAt, Duration rtt) {
    if (!covers(sentAt, rtt)) first_ = last_ = sentAt;
    first_ = std::min(first_, sentAt);
    last_ = std::max(last_, sentAt);
  }
  /// Whether `sentAt` is within a round trip of the episode.
  bool covers(Time sentAt, Duration rtt) const {
    return first_ != kNever && sentAt + rtt >= first_ && sentAt <= last_ + rtt;
  }

 private:
  Time first_ = kNever;
  Time last_{};
};

/// What one path shows of congestion: CE marks, queues, and losses beside them.
class CongestionSigns {
 public:
  /// A queue is a sign when it lasts as long as the RTT without it, kOwnQueues times the queue that
  /// the controller keeps, and 1/kPartOfLongest of the longest queue seen lately. Chosen: packets
  /// are lost when a buffer is full, and jitter rarely comes near its longest.
  static constexpr int kOwnQueues = 2;
  static constexpr int kPartOfLongest = 2;
  /// With each sample, the longest queue shrinks by 1/kFading of itself.
  static constexpr int kFading = 256;
  /// Hysteresis: a path is congested after one loss by congestion, until kCalm packets arrived
  /// without another, or for kForget.
  static constexpr uint32_t kCalm = 128;
  static constexpr Duration kForget = 10s;

  /// A packet sent at `sentAt` had this round-trip time; `least`: the RTT without a queue; `own`:
  /// Controller::ownQueue().
  void onRtt(Duration rtt, Duration least, Time sentAt, Duration own = {}) {
    heardAt_ = heardAt_ == kNever ? sentAt : std::max(heardAt_, sentAt);
    Duration queue = std::max(rtt - least, Duration{});
    longest_ = std::max(queue, longest_ - longest_ / kFading);
    if (queue >= std::max(least, kOwnQueues * own) && kPartOfLongest * queue >= longest_)
      onMarks(sentAt);
  }
  /// An ACK reported CE marks; the newest packet that it covers was sent at `sentAt`.
  void onMarks(Time sentAt) { signAt_ = signAt_ == kNever ? sentAt : std::max(signAt_, sentAt); }
  /// Whether the loss of a packet sent at `sentAt` is one by congestion: the path showed a sign
  /// within a round trip, or nothing was heard of what it sent then, and the session lost packets
  /// by congestion. `rtt`: smoothed.
  bool explain(Time sentAt, Duration rtt, CongestionEpisode& session, Time now) {
    bool own = signAt_ != kNever && sentAt <= signAt_ + rtt && signAt_ <= sentAt + rtt;
    if (own) session.onLoss(sentAt, rtt);
    bool heard = heardAt_ != kNever && heardAt_ + rtt >= sentAt;
    if (!own && (heard || !session.covers(sentAt, rtt))) return false;
    lostAt_ = now;
    calm_ = 0;
    return true;
  }
  void onAcked() { calm_ += calm_ < kCalm; }
  /// Of late the path lost packets by congestion.
  bool congested(Time now) const {
    return lostAt_ != kNever && calm_ < kCalm && now - lostAt_ < kForget;
  }

 private:
  Duration longest_{};
  Time heardAt_ = kNever;  // when the newest packet was sent that has an RTT sample
  Time signAt_ = kNever;   // when the newest packet was sent that shows congestion
  Time lostAt_ = kNever;   // when the last loss by congestion was noticed
  uint32_t calm_ = 0;      // packets that arrived since
};

}  // namespace braid
