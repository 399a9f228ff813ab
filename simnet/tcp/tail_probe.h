#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace braid::sim::tcp {

/// Tail loss probe (RFC 8985 section 7): when it goes, and what its answer says. There is one at a time.
class TailProbe {
 public:
  /// Assumed until an RTT is known (section 7.2).
  static constexpr Duration kInitial = 1s;

  /// The time from now to the probe. `srtt`: 0 when unknown; `single`: one segment is outstanding, whose ACK
  /// may be delayed by `ackDelay`.
  static Duration timeout(Duration srtt, bool single, Duration ackDelay) {
    if (srtt == Duration{}) return kInitial;
    return 2 * srtt + (single ? ackDelay : Duration{});
  }

  bool outstanding() const { return end_.has_value(); }
  /// A probe was sent; `end`: all data sent so far, the probe's included. `again`: it was no new data.
  void onSent(uint64_t end, bool again) {
    end_ = end;
    again_ = again;
  }
  void forget() { end_.reset(); }

  /// True when the probe repaired a loss, for which the window must give way (section 7.4). `ack`: the
  /// cumulative ACK; `progress`: it is new; `dsackEnd`: end of the range that a D-SACK names; `sacks`: others.
  bool onAck(uint64_t ack, bool progress, std::optional<uint64_t> dsackEnd, bool sacks) {
    if (!end_ || ack < *end_) return false;
    bool duplicate = dsackEnd == end_ || (ack == *end_ && !progress && !sacks && !dsackEnd);
    if (again_ && !duplicate && ack == *end_) return false;  // of the segment or of its probe
    bool repaired = again_ && !duplicate;
    forget();
    return repaired;
  }

 private:
  std::optional<uint64_t> end_;  // TLP.end_seq
  bool again_ = false;           // TLP.is_retrans
};

}  // namespace braid::sim::tcp
