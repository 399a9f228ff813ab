#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace braid::sim::tcp {

/// Tail loss probes (RFC 8985 section 7): decides when a probe is sent and interprets its answer.
/// At most one probe is outstanding.
class TailProbe {
 public:
  /// Probe timeout until an RTT is known (section 7.2).
  static constexpr Duration kInitial = 1s;

  /// The time from now to the probe. `srtt`: 0 when unknown. `single`: only one segment is
  /// outstanding, so its ACK may be delayed by `ackDelay`.
  static Duration timeout(Duration srtt, bool single, Duration ackDelay) {
    if (srtt == Duration{}) return kInitial;
    return 2 * srtt + (single ? ackDelay : Duration{});
  }

  bool outstanding() const { return end_.has_value(); }
  /// A probe was sent. `end`: offset behind all data sent until now, including the probe's.
  /// `again`: the probe was a retransmission.
  void onSent(uint64_t end, bool again) {
    end_ = end;
    again_ = again;
  }
  void forget() { end_.reset(); }

  /// True when the probe repaired a loss, for which the window must be reduced (section 7.4).
  /// `ack`: the cumulative ACK; `progress`: it acknowledges new data; `dsackEnd`: end of the range
  /// in a D-SACK; `sacks`: the ACK has other SACK blocks.
  bool onAck(uint64_t ack, bool progress, std::optional<uint64_t> dsackEnd, bool sacks) {
    if (!end_ || ack < *end_) return false;
    bool duplicate = dsackEnd == end_ || (ack == *end_ && !progress && !sacks && !dsackEnd);
    // may be the ACK of the original or of the probe
    if (again_ && !duplicate && ack == *end_) return false;
    bool repaired = again_ && !duplicate;
    forget();
    return repaired;
  }

 private:
  std::optional<uint64_t> end_;  // TLP.end_seq
  bool again_ = false;           // TLP.is_retrans
};

}  // namespace braid::sim::tcp
