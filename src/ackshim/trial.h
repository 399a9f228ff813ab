#pragma once

#include <cstdint>

#include "ackshim/counters.h"
#include "ackshim/half.h"

namespace braid {

/// What became of the last time the shim acted on one direction of a flow: it counts as useful or as
/// spurious.
class Trial {
 public:
  /// The shim spoke about, or sent again, what begins at `at`.
  void onFired(ShimCounters& counters, Actuator actuator, Seq at, bool sent) {
    if (state_ == State::kTold && actuator_ == actuator && at_ == at) return;  // once more, no new attempt
    ++counters[actuator].fired;
    actuator_ = actuator;
    at_ = at;
    state_ = sent ? State::kSent : State::kTold;
    hasTs_ = false;
  }
  /// The sender sent it again.
  void onAgain(const TcpSegment& s) {
    if (state_ != State::kTold || s.seq > at_ || s.end <= at_) return;
    state_ = State::kSent;
    hasTs_ = s.options.timestamps.has_value();
    if (hasTs_) ts_ = s.options.timestamps->value & kTsMask;
  }
  /// An ACK of the receiver. `tooEarly`: less time has passed since the shim acted than the way takes. True
  /// when it turns out that the shim should have waited.
  bool onAck(ShimCounters& counters, const TcpSegment& s, bool isNew, bool tooEarly) {
    if (state_ == State::kIdle) return false;
    bool denied = s.hasDsack() && s.options.sacks[0].begin <= at_ && s.options.sacks[0].end > at_;
    if (state_ == State::kUseful) {
      if (!denied) return false;
      --counters[actuator_].useful;
      return spurious(counters);
    }
    if (denied) return spurious(counters);
    if (!isNew || s.ack <= at_) return false;
    // Nothing was sent again, or the ACK is older than what was (RFC 3522 section 3.2): the first one
    // arrived.
    bool older = hasTs_ && s.options.timestamps && isOlder(s.options.timestamps->echo);
    if (state_ == State::kTold || older || tooEarly) return spurious(counters);
    ++counters[actuator_].useful;
    state_ = State::kUseful;
    return false;
  }

 private:
  enum class State : uint8_t { kIdle, kTold, kSent, kUseful };

  bool spurious(ShimCounters& counters) {
    ++counters[actuator_].spurious;
    state_ = State::kIdle;
    return true;
  }

  // The low bits of a timestamp are enough for the seconds that a trial takes: they wrap in 67 s at the
  // fastest, a tick of a microsecond.
  static constexpr unsigned kTsBits = 26;
  static constexpr uint32_t kTsMask = (uint32_t{1} << kTsBits) - 1;
  bool isOlder(uint32_t echo) const { return (echo - ts_) >> (kTsBits - 1) & 1; }

  Seq at_;
  uint32_t ts_ : kTsBits = 0;
  State state_ : 2 = State::kIdle;
  Actuator actuator_ : 3 = Actuator{};
  bool hasTs_ : 1 = false;
};
static_assert(sizeof(Trial) == 8);

}  // namespace braid
