#pragma once

#include "tunnel/fec/policies.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/subflow/subflow.h"

namespace braid {

/// Decides which lost packet is resent next, and on which path. The data tracker keeps the queue of
/// packets to repair. This class chooses a path for each of them, and lets a packet wait while the
/// peer may still recover it from a copy or a parity in flight.
class Repairs {
 public:
  /// All arguments must outlive this object.
  Repairs(SubflowSet& subflows, DataTracker& dataTracker, const RecoveryPolicies& policies,
          PacketPool& pool)
      : subflows_(subflows), dataTracker_(dataTracker), policies_(policies), pool_(pool) {}

  /// The first packet to repair that does not wait for the peer's answer to its protection; nullptr
  /// when there is none.
  UnitRef first(Time now);
  /// The first such packet for which a path is open now, and that path. Packets that no path can
  /// carry are given up, or cut if they are stream data.
  UnitRef pick(Subflow*& path, Time now);
  /// Whether this packet may be resent on that path.
  bool mayUse(const DataUnit& datum, const Subflow& path) const;
  /// When the first packet stops waiting for the peer's answer; may be in the past. kNever: none
  /// waits.
  Time readyAt() const { return readyAt_; }

 private:
  UnitRef nextReady(UnitRef datum, int& left, Time now);
  Subflow* pathFor(const DataUnit& datum, Time now) const;
  bool isTooLarge(const DataUnit& datum) const;
  bool cut(UnitRef datum);

  SubflowSet& subflows_;
  DataTracker& dataTracker_;
  const RecoveryPolicies& policies_;
  PacketPool& pool_;
  Time readyAt_ = kNever;
  /// Value of DataTracker::repairChanges() when no packet was ready before readyAt_.
  uint64_t noneReady_ = UINT64_MAX;
};

}  // namespace braid
