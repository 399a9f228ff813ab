#pragma once

#include "inet/flow_key.h"

namespace braid {

/// What the shim asks the tunnel, seldom: a round trip before it would speak, and then. A call upward because it is a
/// question: the answer must be that of the moment.
class TunnelKnowledge {
 public:
  virtual ~TunnelKnowledge() = default;
  /// Packets of this inner flow (its key is from the local host) are queued, or sent and not known to have
  /// come out of the far gateway, or being repaired.
  virtual bool isCarrying(const FlowKey& key) const = 0;
};

}  // namespace braid
