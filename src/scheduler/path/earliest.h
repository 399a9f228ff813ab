#pragma once

#include "scheduler/path/path_scheduler.h"

namespace braid {

/// Completes each inner flow as early as possible. A packet is sent on the open path on which it
/// arrives first. It waits instead if the faster paths, which are closed now, would deliver all
/// that the flow has queued before that packet would arrive. While it waits, the open path may be
/// offered to other flows.
///
/// The rule is the comparison of ECF (Lim, Nahum, Towsley, Gibbens, CoNEXT 2017, Algorithm 1: wait
/// when (1 + k/CWND_f) RTT_f is less than RTT_s + delta) with the quantity of BLEST (Ferlin, Alay,
/// Mehani, Boreli, IFIP Networking 2016): what the faster paths send in the time that the slower
/// one takes. Both papers look at a connection. Here it is the inner flow, because the peer puts
/// each inner flow in order separately.
///
/// Waiting is bounded by the time that the slower path takes longer, plus a quarter of its delay
/// (ECF's beta). A flow that has waited that long and still has packets queued has more to send
/// than is queued. It counts as bulk, and takes every open path until it pauses. So waiting never
/// costs a burst more than that time.
class Earliest final : public PathScheduler {
 public:
  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                             FlowPatience& patience, Time now) override;
};

}  // namespace braid
