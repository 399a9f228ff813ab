#pragma once

#include <cstdint>
#include <string>

namespace braid {

/// One inner flow, for the operator.
struct FlowStatus {
  std::string name;  ///< "tcp 10.0.0.1:443 > 10.0.0.2:5000"
  uint64_t packets = 0, bytes = 0, queuedBytes = 0, drops = 0, marks = 0;
  uint64_t unacked = 0;  ///< packets sent and not known delivered
};

}  // namespace braid
