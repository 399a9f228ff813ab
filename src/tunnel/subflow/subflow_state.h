#pragma once

// The states of a subflow, each with the data that no other state has.
//
//   Validating --(the peer answers)--> Active --(it falls silent, or is refused)--> Suspect
//   Suspect ----(an ACK comes)-------> Active
//   any --------(its uplink is gone)-> Closed
//   Closed -----(the peer answers)---> Active
//
// Only an active subflow has data to carry, so only there a probe timeout runs.

#include <algorithm>
#include <cstdint>
#include <variant>

#include "base/time.h"

namespace braid::state {

/// The peer has not answered on the route yet: no data.
struct Validating {};

/// The subflow carries data.
struct Active {
  /// PTOs in a row, without any acknowledgment, that make a subflow suspect, at the earliest. Ours.
  static constexpr int kSuspectPtos = 2;

  int ptos = 0;           ///< PTOs in a row, without any acknowledgment
  Time lastPtoAt;         ///< of the last of them
  Time askedAt = kNever;  ///< the peer was asked to be heard on the path, and has not been since
};

/// Silent: the subflow's data has been moved, and it is probed with backoff until an ACK comes.
struct Suspect {
  /// Probes before their pauses grow: on a path that loses one packet in three, the first few may be lost.
  /// Ours.
  static constexpr int kQuickProbes = 4;
  /// Each pause is longer than the one before by 1/kProbeGrowth of it: a path that is back is found out after half of
  /// its silence more at most, after a sixth of it usually. Ours.
  static constexpr int kProbeGrowth = 2;
  /// Longest pause between probes. Ours.
  static constexpr Duration kMaxProbeInterval = 1s;
  /// A subflow suspect for longer is shown as failed; it is probed all the same. Ours.
  static constexpr Duration kFailedAfter = 10s;

  Time since;
  Duration probeInterval;  ///< pause after the next probe
  Time probeAt;            ///< when the next probe goes, unless the peer refuses the path
  Time probedAt;           ///< when the last one went; Time::min(): none has
  int probes = 0;          ///< sent so far

  /// The first probe goes at once.
  Suspect(Duration pto, Time now) : since(now), probeInterval(pto), probeAt(now), probedAt(Time::min()) {}
  void onProbe(Time now) {
    probedAt = now;
    probeAt = now + probeInterval;
    if (++probes >= kQuickProbes)
      probeInterval = std::min<Duration>(probeInterval + probeInterval / kProbeGrowth, kMaxProbeInterval);
  }
  /// The peer was heard: the next probe goes a PTO after the last one, however long the pause has become.
  void hasten(Duration pto, Time now) { probeAt = std::max(now, probedAt + pto); }
  bool hasFailed(Time now) const { return now - since > kFailedAfter; }
  /// The silence was so long that what was known of the path is stale.
  bool isStale(Time now) const { return now - since > kMaxProbeInterval; }
};

/// The subflow has no usable route. Its numbers are kept, so that it may come back.
struct Closed {
  bool reopened = false;  ///< it has a route again, which is being proven
};

}  // namespace braid::state

namespace braid {

using SubflowState = std::variant<state::Validating, state::Active, state::Suspect, state::Closed>;

}  // namespace braid
