#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace braid {

/// What a load test is to measure (measurement.h).
struct MeasureRequest {
  static constexpr Duration kLongest = 60s;
  static constexpr uint64_t kMostBytes = uint64_t{10} << 30;

  std::string
      path;  ///< name of the uplink; at the side that listens the peer's address and port; empty: all paths
  Duration time = 5s;                    ///< at most kLongest
  uint64_t bytes = uint64_t{500} << 20;  ///< UDP payload, at most kMostBytes
  bool metered = false;                  ///< metered paths, too; one that is named is meant in any case
};

}  // namespace braid
