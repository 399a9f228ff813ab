#pragma once

#include "scheduler/path/path_scheduler.h"

namespace braid {

/// Earliest completion of each inner flow. A packet goes on the open path where it arrives first, unless the
/// faster ones, closed for now, would have brought all that the flow has queued by then: then it waits for
/// them, and other flows may be asked for the open path.
///
/// The rule is the comparison of ECF (Lim, Nahum, Towsley, Gibbens, CoNEXT 2017, Algorithm 1: wait when
/// (1 + k/CWND_f) RTT_f is less than RTT_s + delta) with the data of BLEST (Ferlin, Alay, Mehani, Boreli,
/// IFIP Networking 2016): what the faster paths send in the time that the slower one takes. Both look at a
/// connection; here it is the inner flow, because every inner flow is put in order by itself.
///
/// A flow that waits for as long as the slower path takes longer, and a quarter of its delay more (ECF's
/// beta), and still has packets queued, has more to come than is queued: it is bulk, and takes every open
/// path until it pauses. So waiting never costs a burst more than that.
class Earliest final : public PathScheduler {
 public:
  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow, FlowPatience& patience,
                             Time now) override;
};

}  // namespace braid
