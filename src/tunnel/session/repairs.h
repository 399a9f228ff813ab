#pragma once

#include "tunnel/lane/data_ledger.h"
#include "tunnel/protect/recovery_policies.h"
#include "tunnel/session/session_owner.h"
#include "tunnel/subflow/subflow_set.h"

namespace braid {

/// Which lost packet is sent again next, and on which path. The ledger keeps the queue of what is to be
/// repaired; here each packet of it gets its path, and waits while protection on its way may yet give it back.
class Repairs {
 public:
  /// All must outlive it.
  Repairs(SubflowSet& subflows, DataLedger& ledger, const RecoveryPolicies& policies, SessionOwner& owner,
          PacketPool& pool)
      : subflows_(subflows), ledger_(ledger), policies_(policies), owner_(owner), pool_(pool) {}

  /// The first packet that need not wait for the peer's word on its protection; nullptr when there is none.
  const Datum* first(Time now);
  /// The first such packet that has a path open now, and that path. Gives up packets that no path carries, and cuts
  /// what is of a stream.
  const Datum* pick(Subflow*& path, Time now);
  /// Whether the packet may go on that path at all.
  bool mayUse(const Datum& datum, const Subflow& path) const;
  /// When the first packet stops waiting for the peer's word; may be past. kNever: none waits for it.
  Time readyAt() const { return readyAt_; }

 private:
  const Datum* nextReady(const Datum* datum, int& left, Time now);
  Subflow* pathFor(const Datum& datum, Time now) const;
  bool isTooLarge(const Datum& datum) const;
  bool cut(const Datum* datum);

  SubflowSet& subflows_;
  DataLedger& ledger_;
  const RecoveryPolicies& policies_;
  SessionOwner& owner_;
  PacketPool& pool_;
  Time readyAt_ = kNever;
  uint64_t noneReady_ = UINT64_MAX;  ///< DataLedger::repairChanges() when none was ready before readyAt_
};

}  // namespace braid
