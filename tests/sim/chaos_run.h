#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// The result of one randomised run.
struct ChaosResult {
  std::string failure;  ///< empty when all checks passed; else a short cause, a colon, and details
  double virtualSeconds = 0;
  uint64_t datagrams = 0;
  uint64_t hash = 0;  ///< of all datagrams
  std::string story;  ///< what was set up and what happened, one line each
};

/// Runs two gateways over one to four bad paths with random traffic and random faults. Then the
/// paths recover, and all transfers must complete. The seed decides everything.
ChaosResult chaosRun(uint64_t seed);

}  // namespace braid::sim
