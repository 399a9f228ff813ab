#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// The result of one randomised run of streams.
struct StreamRunResult {
  std::string failure;  ///< empty when all checks passed; else a short cause, a colon, and details
  double virtualSeconds = 0;
  uint64_t datagrams = 0;
  uint64_t hash = 0;  ///< of all datagrams
  uint64_t streams = 0, whole = 0, reset = 0;
  uint64_t halfClosed = 0, stalled = 0;
  uint64_t troubled = 0;  ///< streams that were reset or cut off, half-closed or stalled
  uint64_t bytes = 0;     ///< bytes read and compared
  std::string story;
};

/// Runs two gateways over one to three bad paths with faults, and streams of all kinds between
/// them, opened by either side: complete, half-closed, stalled, refused and reset ones. Compares
/// every byte; every stream must end. At least half of the streams must be reset, half-closed or
/// stalled, or the run fails. The seed decides everything.
StreamRunResult streamRun(uint64_t seed);

}  // namespace braid::sim
