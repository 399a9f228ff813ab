#pragma once

// Rate control on Internet paths (targets rate.2 to rate.7). See docs/evaluation.md.

#include "sim/rate_params.h"

namespace braid::sim {

/// Bulk: one download over WiFi and LTE.
Json runWanBulk(const RateParams& params);
/// Small exchanges beside the download of runWanBulk().
Json runInteractive(const RateParams& params);
/// One path with a capacity that changes every second.
Json runTrace(const RateParams& params);
/// One path with a policer.
Json runPolicer(const RateParams& params);
/// One path with a small buffer, measured from the start on.
Json runShallow(const RateParams& params);
/// One tunnel beside tunnels with another controller at one drop-tail queue.
Json runCubicShare(const RateParams& params);
/// Two tunnels with the same controller, of which the second starts later.
Json runConverge(const RateParams& params);

}  // namespace braid::sim
