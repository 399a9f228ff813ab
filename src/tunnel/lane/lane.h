#pragma once

#include "base/time.h"

namespace braid {

class Flow;

/// What the data of a flow is. The fair round is one for all lanes and asks the flow's lane for the data.
class Lane {
 public:
  virtual ~Lane() = default;
  /// The round has come to the flow. Readies its next unit, which stays the next until it is taken; false when
  /// the flow has nothing to send.
  virtual bool prepare(Flow& flow, Time now) = 0;
};

}  // namespace braid
