#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/figures.h"
#include "simnet/tcp/endpoint.h"

namespace braid::sim {

/// A recovery from losses: what was sent again from its beginning until what was in flight then is acknowledged.
struct TracedRecovery {
  bool timeout = false;  ///< by the retransmission timer; false: fast retransmit
  double size =
      0;  ///< from the first byte of the first segment sent again to that of the last, shares of the window
  double position = 0;  ///< of the first segment in the window when that was first sent, [0, 1]
  double window = 0;    ///< then, segments
};

/// What T-RACKs' LossProbe sees of a sender (section III-B): how it recovers from losses, and where these were in the
/// window. A window begins with the segment that is sent next when the one that began the last window is acknowledged:
/// counted from the last acknowledged byte, whatever ACKs let go would be at the end of a window. Tail loss probes are no
/// recoveries.
class LossTrace {
 public:
  /// Takes the endpoint's watcher; the endpoint outlives this or sends nothing afterwards.
  explicit LossTrace(tcp::Endpoint& endpoint);
  LossTrace(const LossTrace&) = delete;
  LossTrace& operator=(const LossTrace&) = delete;

  const std::vector<TracedRecovery>& recoveries() const { return recoveries_; }

 private:
  /// The window when a segment was first sent.
  struct Window {
    double bytes = 0;
    uint64_t begin = 0;
  };
  void onSegment(const tcp::DataSegment& segment);
  Window windowOf(uint64_t offset) const;

  tcp::Endpoint& endpoint_;
  std::map<uint64_t, Window> windows_;  // by the first byte of each segment that is not acknowledged
  std::vector<TracedRecovery> recoveries_;
  uint64_t windowBegin_ = 0;
  uint64_t first_ = 0, end_ = 0;  // of the last recovery: its first byte sent again, and what ends it
};

/// Of these recoveries by one of both ways: their number; in ten bins the shares by size and by position (figures 1a to
/// 1d); the share of those larger than 30 % of the window and of those in its last tenth; the windows' mean and
/// percentiles in segments (figure 2a). Shares of nothing are 0.
Json recoveriesJson(std::span<const TracedRecovery> recoveries, bool timeout);

}  // namespace braid::sim
