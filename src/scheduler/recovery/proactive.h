#pragma once

#include "scheduler/recovery/recovery.h"

namespace braid {

/// "proactive": every data packet twice on its own path, at once (FUSO section VI-A, after Flach et al.,
/// "Reducing Web Latency", SIGCOMM 2013). Beyond that nothing is protected.
class Proactive final : public RecoveryPolicy {
 public:
  Time notBefore(const RecoveryView&) const override { return kNever; }
  std::optional<Protection> choose(const RecoveryView&) override { return std::nullopt; }
  Duplication duplication() const override { return Duplication::kSamePath; }
};

}  // namespace braid
