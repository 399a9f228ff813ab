#pragma once

// Rate control on paths of the Internet (targets rate.2 to rate.7): docs/evaluation.md.

#include "sim/rate_params.h"

namespace braid::sim {

/// One download over WiFi and LTE.
Json runWanBulk(const RateParams& params);
/// Small exchanges beside such a download.
Json runInteractive(const RateParams& params);
/// One path whose capacity changes every second.
Json runTrace(const RateParams& params);
/// One path with a policer.
Json runPolicer(const RateParams& params);
/// One path with a small buffer, from the start on.
Json runShallow(const RateParams& params);
/// One tunnel beside others of another controller at one drop-tail queue.
Json runCubicShare(const RateParams& params);
/// Two tunnels of one controller, the second later.
Json runConverge(const RateParams& params);

}  // namespace braid::sim
