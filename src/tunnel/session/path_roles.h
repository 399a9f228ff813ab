#pragma once

// The roles of a session's subflows: which of them may carry data now, and what the peer is told
// about it.
//
// The preferences (PathPreference) are those of the initiator's uplinks. The initiator says how it
// uses a subflow, and how the responder shall use it (a wish, sent as SUBFLOW_PREFERENCE). The role
// of each subflow follows from the preferences of all usable subflows: it carries all data, only
// data that is too much for better paths (overflow), or none. A metered subflow carries the
// overflow when the normal ones have been saturated for long (OverflowHysteresis).

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "scheduler/path/path_tiers.h"
#include "scheduler/rate/pacer.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/peer_events.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

class PathRoles {
 public:
  enum class Side : uint8_t { kInitiator, kResponder };

  /// `largestDatagram`: burst in bytes that a ceiling permits. All arguments must outlive this
  /// object.
  PathRoles(Side side, size_t largestDatagram, SubflowSet& subflows, ControlFrames& controls,
            PeerEvents& events)
      : side_(side),
        largestDatagram_(largestDatagram),
        subflows_(subflows),
        controls_(controls),
        events_(events) {}

  // ---- preferences

  /// Initiator: sets how this side and the peer shall use the subflow. `ceiling` limits what this
  /// side sends. The peer is told when its preference is not the default, or was not.
  void setPreference(Subflow& subflow, const PathPreference& own, const PathPreference& peers,
                     std::shared_ptr<Pacer> ceiling);
  /// What the peer is told about the subflow; nullptr: nothing.
  const SubflowPreferenceFrame* wishFor(const Subflow& subflow) const;
  /// Responder: the peer says how it wants a subflow used. An initiator ignores such a frame.
  void onPeerPreference(const SubflowPreferenceFrame& frame);

  // ---- roles

  /// A subflow has become usable: tells the peer its preference, if there is one.
  void onUsable(const Subflow& subflow);
  /// A subflow was added or closed, has changed its state or has another preference.
  void onChange() { isDue_ = true; }
  /// Gives each subflow its role, if something has changed since the last update.
  void update(Time now);

  // ---- saturation of the better paths

  /// New data is left over while no path that may carry it is open. Returns whether subflows with
  /// the role of overflow may carry it now.
  bool mayOverflow(Time now);
  /// No new data is left over.
  void onDrained(Time now);
  void onTimer(Time now);
  /// Nothing is due, and onDrained() and onTimer() would change nothing.
  bool isAtRest() const { return !isDue_ && (!meteredWait_ || overflowHysteresis_.isStill()); }
  Time nextDeadline(Time now) const {
    return meteredWait_ ? overflowHysteresis_.nextDeadline(now) : kNever;
  }

 private:
  std::shared_ptr<Pacer> ceilingOf(const PathPreference& preference);
  void assign(Time now);
  void advance(Time now);

  Side side_;
  size_t largestDatagram_;
  SubflowSet& subflows_;
  ControlFrames& controls_;
  PeerEvents& events_;
  /// Initiator: what the peer is told, by position of the subflow; sequence 0: nothing.
  std::vector<SubflowPreferenceFrame> wishes_;
  std::map<uint8_t, std::shared_ptr<Pacer>> ceilings_;  ///< responder: by number of the uplink
  bool isDue_ = false;                                  ///< onChange() since the last assign()
  bool meteredWait_ = false;  ///< there are usable metered subflows and usable normal ones
  OverflowHysteresis overflowHysteresis_;  ///< of the normal subflows
};

}  // namespace braid
