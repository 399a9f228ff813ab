#pragma once

#include "base/random.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// CoFUSO (Liu et al., "Reducing web latency with coding-based fast multi-path loss recovery", Wireless
/// Networks 2020; Algorithm 2, sections 4.2 and 4.4). Asked like FUSO, with the same condition on the
/// windows, and answers with parities over the un-ACKed, uncoded packets of the worst path, sent on the best
/// path:
///
///     L = alpha1 * lossrate + beta1 * lossrate_last       of the worst path
///     K = min(M_max / L, N_uc, K_max),  M = K * L         a new block
///
/// A block under way goes on first, also after new data came between and when nothing else is to protect. A
/// worst path that has nothing uncoded left gets FUSO's copies of its oldest packets, coded before or not.
///
/// Worst and best: the largest and smallest alpha2 * L/max(L) + beta2 * RTT/max(RTT). The paper does not say
/// how it normalises; here the maxima are over the paths that are usable or have something to protect, and a
/// term whose maximum is 0 is 0.
///
/// Where the paper is silent: M_max / L is rounded down and K * L up; L counts as at most 1; with L = 0,
/// K = min(N_uc, K_max) and M = 1, as the experiment of section 6.1.1 has it. A packet that was copied is
/// coded no more, so that a path all of whose packets were copied is no worst path; a path without an RTT
/// counts as the slowest; paths that never sent anything are as in FUSO; the first of equals is taken. M_max
/// is for the RTT of the worst path. A block of one packet is a parity like others, though a copy would do
/// the same with a smaller header: Algorithm 2 has no exception.
class CoFuso final : public RecoveryPolicy {
 public:
  CoFuso(const RecoveryOptions& options, uint64_t seed) : options_(options), random_(seed) {}

  std::optional<Protection> choose(const RecoveryView& view) override;

 private:
  /// Estimated loss rate L, 0..1.
  double lossRate(const RecoveryPath& path) const;
  Protection protect(const RecoveryPath& worst) const;

  RecoveryOptions options_;
  Random random_;
};

}  // namespace braid
