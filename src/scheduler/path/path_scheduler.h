#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/time.h"

namespace braid {

/// What new-data scheduling may know of a subflow.
struct PathView {
  Duration srtt{};
  Duration rttvar{};
  uint64_t window = 0;    ///< bytes
  uint64_t inFlight = 0;  ///< bytes
  double rate =
      0;  ///< bytes per second that window, pacer and ceiling let through; infinity when not known yet
  Duration wait{};      ///< until the path should be open; 0 when it is
  bool open = false;    ///< usable, the window has room for a datagram and the pacer lets it go now
  bool ahead = false;   ///< open, or would be with a little more window and pacer: for small flows
  bool usable = false;  ///< validated and not suspect; may be closed for now by window or pacer
  uint64_t sent = 0;    ///< bytes so far, everything included
  unsigned weight = 1;  ///< at least 1
  uint16_t uplink = 0;  ///< paths of one number share an uplink; less than 512
};

/// What a scheduler remembers of an inner flow. The flow keeps the record and says when it begins anew and when it
/// is drained; everything else only the scheduler writes.
struct FlowPatience {
  Time since = kNever;  ///< its packets wait for a better path than one that is open; kNever: they do not
  Time first = kNever;  ///< when it first did in this burst
  bool bulk = false;    ///< it has waited for as long as that may help: it takes what is open
  Time until = kNever;  ///< when to ask again at the latest, if nothing changes

  /// The flow has been quiet: it may be another kind of flow from now on.
  void restart() { *this = {}; }
  /// Nothing of the flow waits any more.
  void onDrained() { since = kNever; }
};

/// The inner flow whose packet is next.
struct FlowView {
  uint64_t bytes = 0;  ///< of the datagram for its packet
  uint64_t drain = 0;  ///< bytes that leave until the flow's queue is empty: its own, and those of flows that
                       ///< take turns with it
  uint64_t queued = 0;  ///< bytes waiting, of all flows
  bool small =
      false;  ///< it has sent next to nothing since it was quiet: a request, a query, a frame of a call
};

/// Chooses the subflow for the next datagram of new data. One policy a file.
class PathScheduler {
 public:
  virtual ~PathScheduler() = default;
  /// Index of the path to send the flow's packet on now. nullopt: better wait for a path that is closed now;
  /// another flow may be asked for.
  virtual std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                                     FlowPatience& patience, Time now) = 0;
};

/// The names that makePathScheduler() knows.
inline constexpr std::string_view kPathSchedulerNames[] = {"earliest", "ecf", "minrtt", "weighted"};

/// Makes a scheduler by its configuration name; nullptr for an unknown name.
std::unique_ptr<PathScheduler> makePathScheduler(std::string_view name);

}  // namespace braid
