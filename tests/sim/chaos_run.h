#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// What one randomised run came to.
struct ChaosResult {
  std::string failure;  ///< empty when all held; else a cause in a few words, a colon, details
  double virtualSeconds = 0;
  uint64_t datagrams = 0;
  uint64_t hash = 0;  ///< of all datagrams
  std::string story;  ///< what was set up and what happened, one line each
};

/// Two gateways over one to four bad paths with random traffic and random misfortunes; then the paths heal,
/// and all must come to a good end. All of it follows from the seed.
ChaosResult chaosRun(uint64_t seed);

}  // namespace braid::sim
