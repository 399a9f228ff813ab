#pragma once

#include <cstdint>
#include <string>

namespace braid::sim {

/// What one randomised run of streams came to.
struct StreamRunResult {
  std::string failure;  ///< empty when all held; else a cause in a few words, a colon, details
  double virtualSeconds = 0;
  uint64_t datagrams = 0;
  uint64_t hash = 0;  ///< of all datagrams
  uint64_t streams = 0, whole = 0, reset = 0;
  uint64_t halfClosed = 0, stalled = 0;
  uint64_t troubled = 0;  ///< reset by either end or cut off, half-closed or stalled
  uint64_t bytes = 0;     ///< that were read and compared
  std::string story;
};

/// Two gateways over one to three bad paths, and streams of all kinds between them, opened by either: whole ones,
/// half-closed, stalled, refused and reset ones, in the midst of misfortunes. Every byte is compared; every end must come
/// to an end. At least half of the streams are reset, half-closed or stalled, or the run fails. All of it follows from the
/// seed.
StreamRunResult streamRun(uint64_t seed);

}  // namespace braid::sim
