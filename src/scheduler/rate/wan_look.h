#pragma once

#include <algorithm>

#include "scheduler/rate/wan_path.h"

namespace braid {

/// A look of `wan` at its path without a queue of its own. The window goes down to a part of what the path
/// holds, until no more than that is in flight; then it is as before. The next round is of packets that were
/// sent while it was low: a queue there is somebody else's, and without one its RTT is the base RTT. The link
/// stays busy but for a few packets.
///
/// Ours, in the place of BBR's ProbeRTT (four packets for 200 ms every 10 s).
class WanLook {
 public:
  /// A look for the base RTT is due when no sample was near it for so long.
  static constexpr Duration kEvery = 5s;
  /// The window of a look, in parts of what the path holds.
  static constexpr double kPart = 0.85;

  /// The window (bytes) is lowered, but not below `least`.
  void begin(double window, const WanPath& path, double least);
  /// The window while the look goes on: `window` or less.
  double limit(double window) const { return isLowered() ? std::min(window, window_) : window; }
  /// A round has ended with so many bytes in flight.
  void onRound(double inFlight) {
    if (inFlight <= window_) state_ = State::kRestored;
  }
  /// The sender paused: nothing was seen while the window was low.
  void onPause() {
    if (isLowered()) state_ = State::kNone;
  }
  /// The round that has just ended tells what the look was for. True once.
  bool takeAnswer() {
    bool isAnswer = state_ == State::kRestored;
    if (isAnswer) state_ = State::kNone;
    return isAnswer;
  }

  /// The window is held down.
  bool isLowered() const { return state_ == State::kLowered; }
  /// From begin() to the answer.
  bool isOn() const { return state_ != State::kNone; }

 private:
  enum class State : uint8_t { kNone, kLowered, kRestored };
  State state_ = State::kNone;
  double window_ = 0;
};

}  // namespace braid
