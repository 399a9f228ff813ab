#pragma once

#include <cstddef>

#include "base/packet.h"
#include "base/time.h"

namespace braid {

class Flow;

/// What the data of a flow is, at its sender: what waits, and what its next unit is. A unit is what travels
/// whole: an inner packet, or a range of a stream's bytes.
///
/// All lanes share the flow table (InnerFlows) and the round (FairRound), which decides whose turn it is and asks the
/// flow's lane for the unit. A lane tells the round of all that begins to wait and of all that it throws away.
class Lane {
 public:
  virtual ~Lane() = default;
  /// The round has come to the flow. Readies its next unit and shows it, of at least one byte; nullptr when the flow
  /// has nothing to send. The unit stays where it is, and the next, until handOut().
  virtual const Packet* prepare(Flow& flow, Time now) = 0;
  /// Hands out the unit that prepare() has shown.
  virtual Packet handOut(Flow& flow) = 0;
  /// The unit that prepare() has shown fits no path. A lane whose units can be cut leaves its first `size` bytes in it
  /// at most, and keeps the rest; false when it cannot.
  virtual bool cut(Flow&, size_t /*size*/) { return false; }
  /// All that the flow has sent is delivered or given up; only told of flows of kStream.
  virtual void onSettled(Flow&) {}
};

}  // namespace braid
