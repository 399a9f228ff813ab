#pragma once

#include "base/random.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// FUSO (Chen et al., "FUSO: Fast Multi-Path Loss Recovery for Data Center Networks", IEEE/ACM ToN 2018;
/// Algorithm 1, sections III-B and III-B.1): when there is nothing new to send and the paths together have
/// window to spare, the oldest un-ACKed packet of the worst path goes once more on the best path, each at
/// most once. Asked after new data is exhausted and after each ACK; the loop of TRY_SEND_RECOVERIES is the
/// session's.
///
/// C_l = alpha * lossrate + beta * lossrate_last, 0 for a path that never lost anything.
/// Worst: the largest C_l among the paths with something un-ACKed; when all are 0, the largest measured RTT.
/// Best: the smallest C_l among the open paths; among those with 0, the smallest measured RTT; a path that
/// never sent anything comes last, and when all open ones are such, one at random. May be the worst one too.
///
/// Where the paper is silent: a path whose un-ACKed packets were all copied is no worst path; equal C_l other
/// than 0 and equal RTTs go to the first path; a path without an RTT comes after those with one, in both
/// searches.
class Fuso final : public RecoveryPolicy {
 public:
  Fuso(const RecoveryOptions& options, uint64_t seed)
      : alpha_(options.alpha), beta_(options.beta), random_(seed) {}

  std::optional<Protection> choose(const RecoveryView& view) override;

 private:
  double alpha_;
  double beta_;
  Random random_;
};

}  // namespace braid
