#pragma once

#include "scheduler/rate/wan_path.h"

namespace braid {

/// The window of `wan` where nobody else keeps a queue: FAST's equation (Wei, Jin, Low, Hegde, IEEE/ACM ToN
/// 2006, eq. (3)), once a round:
///
///     w <- (1 - g) w + g (w * baseRTT / RTT + alpha)
///
/// RTT is the smallest sample of the round, which jitter and clumps of ACKs do not move. alpha, what is to be
/// queued, is the path's rate times the target (wan_target.h), and what is lost on the way besides: the link
/// never runs dry, and loss is not congestion.
class WanModel {
 public:
  /// g. FAST leaves it open.
  static constexpr double kGain = 0.5;
  /// A round moves the window up by so much of itself at most. FAST: it doubles at most.
  static constexpr double kMostGrowth = 0.25;
  /// After so many rounds in turn with less than half the target queued the steps up double each round (Copa,
  /// Arun and Balakrishnan, NSDI 2018, section 2.1: velocity).
  static constexpr int kSteadyRounds = 3;
  /// While less than the target is queued the window is widened for the usual loss, up to this share.
  static constexpr double kMostLoss = 0.1;
  /// What a round with CE marks leaves (RFC 8511 section 3).
  static constexpr double kMarkBeta = 0.85;
  /// The least window, datagrams. Ours.
  static constexpr uint64_t kMinDatagrams = 4;

  /// `datagram`: bytes of a full one; `initial`: datagrams of the initial window.
  WanModel(uint64_t datagram, uint64_t initial)
      : least_(static_cast<double>(kMinDatagrams * datagram)),
        initial_(static_cast<double>(initial * datagram)) {}

  /// Bytes that every window has at least.
  double least() const { return least_; }

  // Each gives the window after something. `window`: the one before it; both in bytes. `target`: seconds.
  /// The mode begins: by the product and the target, or the initial window if that is more, but no more than there was.
  double begin(double window, const WanPath& path, double target);
  /// A round that used the window has ended, and is in `path`.
  double onRound(double window, const WanPath& path, double target);
  /// A round that did not use it on average. When the burst after a pause filled it all the same and left no queue, the
  /// window was too small for the burst and grows; else by the mean RTT it only falls, to the initial one at least.
  double onUnusedRound(double window, const WanRound& round, const WanPath& path, double target);
  /// A round with CE marks.
  double onMarkedRound(double window);

 private:
  double step(double window, double queue, const WanPath& path, double target) const;

  double least_;
  double initial_;
  int low_ = 0;  // rounds in turn with little queued
};

}  // namespace braid
