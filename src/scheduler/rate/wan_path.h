#pragma once

#include <algorithm>

#include "scheduler/rate/wan_round.h"

namespace braid {

/// What `wan` knows of its path: the RTT without a queue, the standing queue, the rate, the usual loss. Ours.
class WanPath {
 public:
  /// The base RTT is forgotten when no sample has come near it for so long; while `wan` competes, a foreign
  /// queue hides it.
  static constexpr Duration kBaseLife = 10s;
  static constexpr Duration kBaseLifeCompeting = 60s;
  /// A sample above the base RTT by one part of so many, or less, is near it.
  static constexpr int kNear = 64;
  /// The highest rate of late is forgotten within about so long: a round takes off the part of it that the
  /// round lasted.
  static constexpr Duration kRateLife = 10s;
  /// Weight of a round in the usual loss.
  static constexpr double kLossGain = 1.0 / 8;

  /// What a round's arrivals say of the rate: nothing (the window was lowered), a lower bound (the sender did
  /// not use its window, or doubles it), or what the path gives.
  enum class Rate : uint8_t { kNothing, kAtLeast, kAll };

  void onAck(const AckSample& ack, bool competing);
  /// `round` has ended; it has a sample.
  void onRound(const WanRound& round, Time now, Rate says);
  /// A look for the base RTT begins: it counts as seen at `at`, so that no other look follows at once.
  void onLook(Time at) { baseSeen_ = std::max(baseSeen_, at); }

  /// Smoothed RTT; 0 before the first ACK.
  Duration srtt() const { return srtt_; }
  /// RTT without a queue; 0 before the first sample.
  Duration base() const { return base_; }
  /// When a sample was near the base RTT last, or a look for it began.
  Time baseSeen() const { return baseSeen_; }
  /// Standing queue of the last round: its smallest RTT above the base.
  Duration queue() const { return queue_; }
  /// Bytes per second that the path gives: the mean of this and what a round says it is, or what a round says
  /// it is at least; 0 before the first round.
  double rate() const { return rate_; }
  /// The highest rate() of late.
  double highest() const { return highest_; }
  /// Bytes per second that arrived in the last round.
  double arrived() const { return arrived_; }
  /// Share of what was sent that is lost, 0..1, of the last rounds.
  double loss() const { return loss_; }
  /// Bytes that the path holds without a queue at rate().
  double product() const { return rate_ * toSeconds(base_); }

 private:
  Duration srtt_{};
  Duration base_{};
  Time baseSeen_;
  Duration queue_{};
  double rate_ = 0;
  double highest_ = 0;
  double arrived_ = 0;
  double loss_ = 0;
};

}  // namespace braid
