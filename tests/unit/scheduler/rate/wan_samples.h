#pragma once

// Samples for the tests of the parts of `wan`.

#include "scheduler/rate/wan_model.h"
#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid {

/// A round of 100 ms, from `now` - 100 ms on, in which bytes arrived at this rate (bytes per
/// second).
inline WanRound roundAt(double rate, Duration rtt, Time now) {
  WanRound round;
  round.began = now - 100ms;
  round.acked = rate / 10;
  round.rtt = round.rtts = rtt;
  round.samples = 1;
  return round;
}

/// A path of this base RTT after one round with this RTT, in which bytes arrived at this rate.
inline PathModel pathOf(Duration base, Duration rtt, double rate) {
  PathModel path;
  path.onAck(
      {.now = at(1s), .largestSentAt = at(1s) - base, .rtt = base, .srtt = rtt, .minRtt = base},
      false);
  path.onRound(roundAt(rate, rtt, at(1s)), at(1s), PathModel::Rate::kAtLeast);
  return path;
}

}  // namespace braid
