#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ackshim/half.h"
#include "ackshim/options.h"
#include "base/random.h"

namespace braid {

/// T-RACKs, Algorithms 1 and 2, for one sender: when to speak, how often, when to stop. Line numbers are
/// those of the paper. The half is that of the sender's data.
class Tracks {
 public:
  static constexpr Duration kNothing = Duration::max();

  /// In recovery, the sender's duplicate ACKs are dropped (line 31).
  bool isRecovering() const { return recovering_; }

  /// A new ACK (lines 21-26): all begins anew.
  void onNewAck() { *this = Tracks(); }
  /// Data of the sender (lines 12-14): the wait begins anew, a recovery goes on.
  void onData() {
    spoken_ = false;
    beta_ = 0;
  }
  /// The sender was told by other means; what follows is as after lines 8-10.
  void onSpoken(const Half& half, const AckShimOptions& options, Random& random, Stamp now) {
    if (beta_ == 0) draw(half, options, random);
    speak(now);
  }

  /// Algorithm 2 for a flow that is not large and has data outstanding, an RTT and an open window: from now
  /// to when act() is to be called; kNothing when only the sender's own timer helps.
  Duration left(const Half& half, const AckShimOptions& options, Random& random, Stamp now) {
    if (beta_ == 0) draw(half, options, random);
    if (!spoken_) return positive(1us * beta_ - (now - latest(half.ackAt, half.activeAt)));  // lines 6, 7
    if (!recovering_) return kNothing;
    return positive(std::min(backoff() - (now - resentAt_), options.rtoMin - (now - half.ackAt)));
  }
  /// Called when nothing is left(): the number of ACKs to send now, which is 0 when the sender has seen as
  /// many already; nothing when it is over.
  std::optional<uint8_t> act(const Half& half, const AckShimOptions& options, Stamp now) {
    if (!spoken_) {  // lines 7-11
      speak(now);
      return static_cast<uint8_t>(options.phi - std::min(half.dupAcks, options.phi));
    }
    if (now - resentAt_ >= backoff() && x_ < kMaxBackoff) {  // lines 12-15
      ++x_;
      return uint8_t{1};
    }
    recovering_ = false;  // lines 16-19
    return std::nullopt;
  }

 private:
  static constexpr uint8_t kMaxBackoff = 16;

  // Line 4, once for each wait.
  void draw(const Half& half, const AckShimOptions& options, Random& random) {
    auto rtt = static_cast<uint64_t>(half.rtt.smoothed() / 1us);
    uint64_t beta = std::max(options.alpha, 1u) * rtt + random.below(rtt);
    beta_ = static_cast<uint32_t>(std::clamp<uint64_t>(beta, 1, UINT32_MAX / 2));
  }
  // Lines 9-10.
  void speak(Stamp now) {
    spoken_ = recovering_ = true;
    resentAt_ = now;
    x_ = 2;
  }
  Duration backoff() const { return 1us * beta_ * (int64_t{1} << x_); }
  static Duration positive(Duration d) { return std::max(d, Duration(0)); }

  Stamp resentAt_;
  uint32_t beta_ = 0;  // us; 0: not drawn
  uint8_t x_ = 0;
  bool spoken_ : 1 = false;      // since the last new ACK or data
  bool recovering_ : 1 = false;  // and not stopped: f.resent > 0
};

}  // namespace braid
