#pragma once

#include <cstdint>

#include "base/time.h"

namespace braid {

/// What BBR may have in flight after congestion; its first draft has no such bound, draft-ietf-ccwg-bbr has. A
/// round was congested when CE marks came, or when more than two datagrams and too large a share were lost:
/// random loss must not slow a lossy path, a full buffer must. Each such round lowers the bound, each probe
/// raises it.
class BbrBound {
 public:
  /// Ours: loss of a round that is congestion when RTTs show a queue (draft-ietf-ccwg-bbr-04 section 2.7 has
  /// 2 %), and without one (a policer).
  static constexpr double kQueueLoss = 0.02;
  static constexpr double kPolicerLoss = 0.2;
  /// Ours: the smoothed RTT above the minimum that counts as a queue.
  static constexpr double kQueueRtt = 1.25;
  /// draft-ietf-ccwg-bbr-04 section 2.7 (Beta is 0.7 there): what a congested round leaves.
  static constexpr double kBackoff = 0.85;

  /// `datagram`: bytes of a full one.
  explicit BbrBound(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}

  /// Bytes; far above every window when there is none.
  double get() const { return bound_; }
  /// Packets of this round were lost.
  bool hasLoss() const { return lost_ > 0; }

  void onAck(uint64_t bytes) { acked_ += static_cast<double>(bytes); }
  void onLoss(uint64_t bytes) { lost_ += static_cast<double>(bytes); }
  void onMarks(uint64_t marks) { marked_ |= marks > 0; }
  /// A round has ended; true when it was congested. Then the bound is below the window (bytes), but not below
  /// `least`.
  bool onRound(Duration srtt, Duration minRtt, double window, double least);
  /// A probe: is there room again?
  void raise(double gain) {
    if (bound_ < kNone) bound_ *= gain;
  }
  /// A bound above so many bytes binds nobody: it goes.
  void release(double above) {
    if (bound_ > above) bound_ = kNone;
  }

 private:
  static constexpr double kNone = 1e18;

  double datagram_;
  double bound_ = kNone;
  // Of the round, bytes:
  double lost_ = 0;
  double acked_ = 0;
  bool marked_ = false;
};

}  // namespace braid
