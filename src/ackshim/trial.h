#pragma once

#include <algorithm>
#include <cstdint>

#include "ackshim/counters.h"
#include "ackshim/half.h"

namespace braid {

/// What became of the last time the shim acted on one direction of a flow. Each copy that it sent, or made
/// the sender send, counts as spurious when it went for nothing; all of them count as useful, once, when the
/// data was acknowledged then and not every copy was spurious.
class Trial {
 public:
  /// The shim spoke about, or sent again, what begins at `at`.
  void onFired(ShimCounters& counters, Actuator actuator, Seq at, bool sent) {
    bool same = actuator_ == actuator && at_ == at;
    if (state_ == State::kTold && same) return;  // once more, no new attempt
    ++counters[actuator].fired;
    copies_ = same && sent && state_ == State::kSent ? std::min<uint32_t>(copies_ + 1, kMaxCopies) : 1;
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
  /// when it turns out, for the first time, that the shim should have waited.
  bool onAck(ShimCounters& counters, const TcpSegment& s, bool isNew, bool tooEarly) {
    if (state_ == State::kIdle) return false;
    bool denied = s.hasDsack() && s.options.sacks[0].begin <= at_ && s.options.sacks[0].end > at_;
    if (denied) return onDenied(counters, s.ack);
    if (state_ > State::kSent || !isNew || s.ack <= at_) return false;
    // Nothing was sent again, or the ACK is older than what was (RFC 3522 section 3.2): the first one
    // arrived.
    bool older = hasTs_ && s.options.timestamps && isOlder(s.options.timestamps->echo);
    if (state_ == State::kTold || older || tooEarly) {
      ++counters[actuator_].spurious;
      state_ = state_ == State::kTold ? State::kIdle : State::kForeseen;
      return true;
    }
    ++counters[actuator_].useful;
    state_ = State::kUseful;
    return false;
  }

 private:
  enum class State : uint8_t {
    kIdle,
    kTold,      ///< the sender was told, and has not sent again yet
    kSent,      ///< there are copies, and no answer yet
    kUseful,    ///< acknowledged
    kPartly,    ///< acknowledged; some copies were spurious
    kForeseen,  ///< a copy counts as spurious already; the D-SACK for it has not come
    kDenied,    ///< some copies were spurious; of the others nothing is known
  };

  /// A D-SACK: one copy went for nothing.
  bool onDenied(ShimCounters& counters, Seq ack) {
    bool first = state_ <= State::kUseful;
    bool useful = state_ == State::kUseful || state_ == State::kPartly;
    if (state_ != State::kForeseen) ++counters[actuator_].spurious;
    --copies_;
    bool mayBeUseful = copies_ > 0 && (useful || (first && ack > at_));
    if (mayBeUseful && !useful) ++counters[actuator_].useful;
    if (useful && !mayBeUseful) --counters[actuator_].useful;
    state_ = copies_ == 0 ? State::kIdle : mayBeUseful ? State::kPartly : State::kDenied;
    return first;
  }

  static constexpr uint32_t kMaxCopies = 7;  // more are not told apart
  // The low bits of a timestamp are enough for the time between two copies: they wrap in 4 s at the fastest,
  // a tick of a microsecond.
  static constexpr unsigned kTsBits = 22;
  static constexpr uint32_t kTsMask = (uint32_t{1} << kTsBits) - 1;
  bool isOlder(uint32_t echo) const { return (echo - ts_) >> (kTsBits - 1) & 1; }

  Seq at_;
  uint32_t ts_ : kTsBits = 0;
  uint32_t copies_ : 3 = 0;  // that no D-SACK was for
  State state_ : 3 = State::kIdle;
  Actuator actuator_ : 3 = Actuator{};
  bool hasTs_ : 1 = false;
};
static_assert(sizeof(Trial) == 8);

}  // namespace braid
