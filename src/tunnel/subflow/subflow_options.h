#pragma once

#include <cstddef>
#include <string>

#include "base/time.h"
#include "scheduler/rate/controller.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// Settings of subflows. Ranges are checked by the configuration reader.
struct SubflowOptions {
  std::string controller = "auto";
  AmpOptions amp{};
  double liaBeta = 2;         ///< see ControllerOptions; no configuration sets it
  size_t initialWindow = 10;  ///< datagrams, at least 2
  size_t outerMtu = 0;        ///< IP packet size on uplinks; 0: probe for it (RFC 8899)
  size_t maxOuterMtu = 1500;  ///< upper end of the probing
  /// Least variance term of the PTO, as TCP's minimum RTO (RFC 6298 section 2.4; Linux: 200 ms): for
  /// comparison with TCP. 0: that of RFC 9002.
  Duration minRto{};
  RecoveryOptions recoveryOptions{};  ///< of all recovery policies, with the weights of the loss metrics
};

}  // namespace braid
