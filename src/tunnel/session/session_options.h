#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/time.h"
#include "tunnel/fec/policies.h"
#include "tunnel/queue/options.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// Settings of a session and of its parts. The configuration reader checks the ranges.
struct SessionOptions : SubflowOptions, QueueOptions, ProtectOptions {
  std::string scheduler = "earliest";
  Duration rekeyAfter = 3600s;  ///< interval of handshakes for new keys; 0: never
  /// New keys are derived after this many packets (RFC 9001 section 6.6: 2^23 for AES-GCM).
  uint64_t rekeyPackets = uint64_t{1} << 23;
  size_t maxSubflows = 32;  ///< per peer
};

/// What a load test shall measure.
struct MeasureRequest {
  static constexpr Duration kLongest = 60s;
  static constexpr uint64_t kMostBytes = uint64_t{10} << 30;

  /// See Subflow::pathName(). Empty: all paths.
  std::string path;
  Duration time = 5s;                    ///< at most kLongest
  uint64_t bytes = uint64_t{500} << 20;  ///< UDP payload, at most kMostBytes
  bool metered = false;  ///< include metered paths; a path named in `path` is always included
};

}  // namespace braid
