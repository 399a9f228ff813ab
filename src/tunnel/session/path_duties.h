#pragma once

// What the subflows of a session are for: which of them may carry data now, and what the peer is told of it.
//
// The initiator's uplinks are what is preferred (PathPreference): it says how it uses a subflow and how the
// responder is to use it (a wish, told with SUBFLOW_PREFERENCE). From the preferences of all usable subflows
// follows the duty of each: all data, only what is too much for better paths (overflow), or none. A metered
// subflow gets the overflow when the normal ones have long been saturated.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "scheduler/path/path_tiers.h"
#include "scheduler/rate/pacer.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/peer_events.h"
#include "tunnel/subflow/subflow_set.h"

namespace braid {

class PathDuties {
 public:
  enum class Side : uint8_t { kInitiator, kResponder };

  /// `largestDatagram`: bytes that a ceiling may let through at once. All must outlive it.
  PathDuties(Side side, size_t largestDatagram, SubflowSet& subflows, ControlFrames& controls,
             PeerEvents& events)
      : side_(side),
        largestDatagram_(largestDatagram),
        subflows_(subflows),
        controls_(controls),
        events_(events) {}

  // ---- preferences

  /// Initiator: how this side and the peer are to use the subflow; `ceiling` limits this side. The peer is told
  /// when the wish is not the default, or was not.
  void setPreference(Subflow& subflow, const PathPreference& own, const PathPreference& peers,
                     std::shared_ptr<Pacer> ceiling);
  /// What the peer is told of the subflow; nullptr: nothing.
  const SubflowPreferenceFrame* wishFor(const Subflow& subflow) const;
  /// Responder: the peer says how it wants a subflow used. An initiator is told nothing.
  void onPeerPreference(const SubflowPreferenceFrame& frame);

  // ---- duties

  /// A subflow has become usable: the peer may be told what it is for.
  void onUsable(const Subflow& subflow);
  /// A subflow came, went, or is for something else.
  void onChange() { isDue_ = true; }
  /// Gives the subflows their duties, if something has changed since.
  void update(Time now);

  // ---- saturation of the better paths

  /// New data is left over while no path that may carry it is open. Whether subflows with the duty of overflow
  /// may take it now.
  bool mayOverflow(Time now);
  /// None is left over.
  void onDrained(Time now);
  void onTimer(Time now);
  /// Nothing is due, and onDrained() and onTimer() would change nothing.
  bool isAtRest() const { return !isDue_ && (!meteredWait_ || saturation_.isStill()); }
  Time nextDeadline(Time now) const { return meteredWait_ ? saturation_.nextDeadline(now) : kNever; }

 private:
  std::shared_ptr<Pacer> ceilingOf(const PathPreference& preference);
  void assign(Time now);
  void advance(Time now);

  Side side_;
  size_t largestDatagram_;
  SubflowSet& subflows_;
  ControlFrames& controls_;
  PeerEvents& events_;
  std::vector<SubflowPreferenceFrame> wishes_;  ///< initiator, by position; sequence 0: nothing is told
  std::map<uint8_t, std::shared_ptr<Pacer>> ceilings_;  ///< responder: by uplink
  bool isDue_ = false;                                  ///< onChange() since the last assign()
  bool meteredWait_ = false;                            ///< metered subflows are there, and better ones
  Saturation saturation_;                               ///< of those better ones
};

}  // namespace braid
