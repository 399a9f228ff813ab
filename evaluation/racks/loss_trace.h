#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "evaluation/models/figures.h"
#include "simnet/tcp/endpoint.h"

namespace braid::sim {

/// A recovery from losses: the retransmissions from its beginning until all data in flight at the
/// beginning is acknowledged.
struct TracedRecovery {
  bool timeout = false;  ///< begun by the retransmission timer; false: by fast retransmit
  /// Distance from the first resent segment's first byte to the last one's, as a share of the
  /// window
  double size = 0;
  /// Position of the first resent segment in the window in which it was first sent, [0, 1]
  double position = 0;
  double window = 0;  ///< that window, segments
};

/// Observes a sender as T-RACKs' LossProbe does (section III-B): how it recovers from losses, and
/// where in the window these were. When the first segment of a window is acknowledged, the next
/// segment sent begins a new window. (If windows were counted from the last acknowledged byte
/// instead, every segment that an ACK releases would lie at the end of its window.) Tail loss
/// probes do not count as recoveries.
class LossTrace {
 public:
  /// Sets the endpoint's watcher. The endpoint must not send after this object is destroyed.
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
  std::map<uint64_t, Window> windows_;  // by the first byte of each unacknowledged segment
  std::vector<TracedRecovery> recoveries_;
  uint64_t windowBegin_ = 0;
  uint64_t first_ = 0,
           end_ = 0;  // of the last recovery: its first byte sent again, and what ends it
};

/// Statistics of the recoveries by timeout (or, with `timeout` false, by fast retransmit): their
/// number; histograms of size and position in ten bins (figures 1a to 1d); the share of those
/// larger than 30 % of the window and of those in its last tenth; mean and percentiles of the
/// window in segments (figure 2a). Shares are 0 when there are no recoveries.
Json recoveriesJson(std::span<const TracedRecovery> recoveries, bool timeout);

}  // namespace braid::sim
