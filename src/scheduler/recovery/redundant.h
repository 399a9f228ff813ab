#pragma once

#include "scheduler/recovery/recovery.h"

namespace braid {

/// "redundant": every packet on two paths at once. RepFlow (CoFUSO section 6.2.1, FUSO section VI-A) sends a
/// short flow twice over two connections; bonding boxes know it as redundant mode. Departure: RepFlow leaves
/// the two paths to chance (ECMP), here they are the two best. Beyond that nothing is protected.
class Redundant final : public RecoveryPolicy {
 public:
  Time notBefore(const RecoveryView&) const override { return kNever; }
  std::optional<Protection> choose(const RecoveryView&) override { return std::nullopt; }
  Duplication duplication() const override { return Duplication::kOtherPath; }
};

}  // namespace braid
