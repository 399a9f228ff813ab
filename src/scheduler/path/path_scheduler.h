#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace braid {

/// What a path scheduler may know about a subflow.
struct PathView {
  Duration srtt{};
  Duration rttvar{};
  uint64_t window = 0;    ///< bytes
  uint64_t inFlight = 0;  ///< bytes
  /// Bytes per second that window, pacer and ceiling let through; infinity: not known yet.
  double rate = 0;
  Duration wait{};      ///< estimated time until the path is open; 0 when it is open
  bool open = false;    ///< usable, and window and pacer allow a datagram now
  bool ahead = false;   ///< open, or open with the priority allowance of small flows
  bool usable = false;  ///< validated and not suspect; window or pacer may keep it closed for now
  uint64_t sent = 0;    ///< all bytes ever sent on the path, of any kind
  unsigned weight = 1;  ///< at least 1
  uint16_t uplink = 0;  ///< paths with the same number share an uplink; less than 512
};

/// What a path scheduler remembers about an inner flow (a flow inside the tunnel). The flow keeps
/// the record; only the scheduler and the caller of its pick() write to it.
struct FlowPatience {
  /// Since when the flow's packets wait for a better path although one is open; kNever: they do
  /// not.
  Time since = kNever;
  Time first = kNever;  ///< when they first waited like that in this burst
  bool bulk = false;    ///< it has waited as long as waiting can help: it takes any open path
  Time until = kNever;  ///< when to ask the scheduler again at the latest, if nothing changes

  uint32_t pausesSeen = 0, drainsSeen = 0;  ///< as of the last update()

  /// Call before pick(). `pauses`: how often the flow has been quiet; after a pause it may behave
  /// as another kind of flow. `drains`: how often the last packet that waited was sent.
  void update(uint32_t pauses, uint32_t drains) {
    if (pauses != pausesSeen) {
      *this = {};
    } else if (drains != drainsSeen) {
      since = kNever;
    }
    pausesSeen = pauses;
    drainsSeen = drains;
    until = kNever;  // after a reload it may come from another scheduler
  }
};

/// The inner flow that offers the next packet.
struct FlowView {
  uint64_t bytes = 0;  ///< size of the datagram that carries the packet
  /// Bytes that are sent until the flow's queue is empty: its own, and those of flows that take
  /// turns with it.
  uint64_t drain = 0;
  uint64_t queued = 0;  ///< bytes waiting, of all flows
  /// The flow has sent very little since it was quiet (FlowBurst::kSmall): a request, a query, or a
  /// frame of a call.
  bool small = false;
};

/// Chooses the subflow for the next datagram of new data.
class PathScheduler {
 public:
  virtual ~PathScheduler() = default;
  /// Index of the path on which to send the flow's packet now. nullopt: no path is open, or the
  /// packet should wait for a path that is closed now; the caller may offer another flow.
  virtual std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                                     FlowPatience& patience, Time now) = 0;
};

/// The names that makePathScheduler() knows.
inline constexpr std::string_view kPathSchedulerNames[] = {"earliest", "ecf", "minrtt", "weighted"};

/// Makes a scheduler by its configuration name; nullptr for an unknown name.
std::unique_ptr<PathScheduler> makePathScheduler(std::string_view name);

/// The default of MPTCP: picks the open path with the lowest smoothed RTT; the first of equals.
class MinRtt final : public PathScheduler {
 public:
  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                             FlowPatience& patience, Time now) override;
};

/// The path with the lowest smoothed RTT among those for which the field `open` (PathView::open or
/// PathView::ahead) is true; the first of equals.
std::optional<size_t> lowestRtt(std::span<const PathView> paths,
                                bool PathView::*open = &PathView::open);

/// Spreads data over uplinks in proportion to their weights. It picks among the open paths of the
/// uplink that has sent the fewest bytes per unit of weight, and of these the one with the lowest
/// smoothed RTT. All that a path has sent counts. An uplink that could not carry its share makes up
/// for at most kMemory of it.
class Weighted final : public PathScheduler {
 public:
  /// Bytes per unit of weight. More than a datagram, which a path of weight 1 sends at once.
  static constexpr double kMemory = 64 << 10;

  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                             FlowPatience& patience, Time now) override;

 private:
  void account(std::span<const PathView> paths);

  std::vector<uint64_t> sent_;  // by path, as last seen
  std::vector<double> served_;  // by uplink: bytes sent per unit of weight
};

}  // namespace braid
