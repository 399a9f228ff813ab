#pragma once

#include "scheduler/recovery/recovery.h"

namespace braid {

/// "none": MPTCP as the papers compare with it (FUSO section VI-A). Nothing is protected; each subflow
/// repairs its own losses. What MPTCP sends on another subflow, opportunistic retransmission when the window
/// is full and the data of a dead subflow, is the session's work under every policy.
class NoRecovery final : public RecoveryPolicy {
 public:
  Time notBefore(const RecoveryView&) const override { return kNever; }
  std::optional<Protection> choose(const RecoveryView&) override { return std::nullopt; }
};

}  // namespace braid
