#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace braid {

/// How much longer than at best a packet took to the peer, and its ACK back: what both waited in
/// queues. Each is 0 or more.
struct OneWayQueues {
  Duration forward{};
  Duration reverse{};
};

/// Splits the queue of a round trip into its two directions, by the times at which the peer says
/// that packets arrived (docs/protocol.md section 7). Nothing is assumed about the peer's clock,
/// except that it advances as fast as this side's within kMostSlope.
///
/// A forward delay is the peer's time of arrival minus this side's time of sending; the reverse
/// delay is the rest of the round trip. The unknown difference of the clocks is in both, with
/// opposite signs. So each is compared with its own least value of the last kWindow, its floor. A
/// clock that is faster by s makes the forward delay grow by s per second and the reverse one
/// shrink as much. A slope that both directions show alike is taken out of the floors.
///
/// When the peer's clock jumps forward, the forward delay seems longer and the reverse one shorter,
/// until the floors have followed within kWindow. What was learnt is forgotten when a clock has
/// jumped by more than the round trip, so that both floors together are shorter than no time at
/// all, and when there was no sample for kWindow.
class OneWayDelay {
 public:
  /// The floors are the least delays of this time, in slots of kSlot.
  static constexpr Duration kWindow = 10s;
  static constexpr Duration kSlot = 2500ms;
  /// Nothing is said before this many samples.
  static constexpr int kLeastSamples = 8;
  /// Most by which the clocks may differ in speed: what NTP slews a clock by (adjtimex(2)).
  static constexpr double kMostSlope = 500e-6;
  /// A slot takes part in the slope when the least delays of both directions moved by the same,
  /// except for this. It then moves the slope by the fraction kSlopeGain.
  static constexpr Duration kAgreement = 300us;
  static constexpr double kSlopeGain = 0.25;
  /// The floors together are shorter than no time if by this much.
  static constexpr Duration kJump = 1ms;
  /// The peer's times count microseconds modulo this.
  static constexpr uint32_t kModulus = uint32_t{1} << 31;

  /// An ACK over the path that newly acknowledges its largest packet.
  struct Sample {
    Time sentAt;            ///< of that packet
    Time now;               ///< when the ACK came
    Duration ackDelay{};    ///< how long the peer held the ACK back, by its own word
    uint32_t received = 0;  ///< the peer's time when the packet came, microseconds mod kModulus
    /// The packet shares its time with others of a run, so it may have come later.
    bool ofRun = false;
  };

  /// Takes a sample; one whose ackDelay exceeds the round trip is ignored.
  void onSample(const Sample& sample);
  /// Forgets everything: the path is another one, or a clock may have jumped.
  void reset() { *this = {}; }

  /// Of the latest sample; nullopt: not known (yet).
  std::optional<OneWayQueues> queues() const;
  /// Means of the last samples, each weighing 1/8 (as the smoothed RTT); nullopt: not known.
  std::optional<OneWayQueues> smoothed() const;
  /// How much faster the peer's clock is than this side's, as a fraction of time; within
  /// kMostSlope.
  double slope() const { return slope_; }

 private:
  struct Least {
    Duration delay = Duration::max();
    Time at;
  };
  /// What was least in one slot of time.
  struct Slot {
    int64_t number = -1;
    int samples = 0;
    Least forward, reverse;
  };
  static constexpr size_t kSlots = kWindow / kSlot + 1;  // with the one that is not over

  int64_t unwrap(uint32_t received) const;
  void learn(Duration forward, Duration reverse, const Sample& sample);
  void learnSlope(int64_t number);
  bool isLive(const Slot& slot) const {
    return slot.samples > 0 && slot.number + static_cast<int64_t>(kSlots) > slot_;
  }
  Slot& slotOf(int64_t number) { return slots_[static_cast<size_t>(number) % kSlots]; }
  /// The floor of a direction at a moment; Duration::max(): there is none.
  Duration floorAt(Least Slot::*direction, Time now) const;

  int samples_ = 0;
  int64_t peer_ = 0;  // the peer's time in the latest sample, microseconds without a modulus
  Time latest_;       // when it came
  double slope_ = 0;
  int64_t slot_ = -1;  // number of the present slot
  std::array<Slot, kSlots> slots_{};
  OneWayQueues queues_;
  OneWayQueues smoothed_;
};

}  // namespace braid
