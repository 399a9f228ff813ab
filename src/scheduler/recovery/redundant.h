#pragma once

#include "scheduler/recovery/recovery.h"

namespace braid {

/// "none": plain MPTCP, with which the papers compare (FUSO section VI-A). Nothing is protected;
/// each subflow repairs its own losses. MPTCP's reinjections on another subflow (opportunistic
/// retransmission when the window is full, and the data of a dead subflow) are done by the session
/// under every policy.
class NoRecovery final : public RecoveryPolicy {
 public:
  Time notBefore(const RecoveryView&) const override { return kNever; }
  std::optional<Protection> choose(const RecoveryView&) override { return std::nullopt; }
};

/// "redundant": sends every packet on two paths at once. RepFlow (CoFUSO section 6.2.1, FUSO
/// section VI-A) sends a short flow twice over two connections; bonding boxes call this redundant
/// mode. Difference: RepFlow leaves the choice of the two paths to chance (ECMP); here they are the
/// two best paths. Nothing else is protected.
class Redundant final : public RecoveryPolicy {
 public:
  Time notBefore(const RecoveryView&) const override { return kNever; }
  std::optional<Protection> choose(const RecoveryView&) override { return std::nullopt; }
  Duplication duplication() const override { return Duplication::kOtherPath; }
};

}  // namespace braid
