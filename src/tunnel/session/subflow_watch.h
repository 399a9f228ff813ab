#pragma once

#include "tunnel/protect/trace.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/path_duties.h"
#include "tunnel/session/session_owner.h"
#include "tunnel/subflow/subflow_events.h"
#include "tunnel/subflow/subflow_set.h"

namespace braid {

/// Acts on what the subflows of a session tell: control frames hear of their fate, duties are due again, the
/// operator and the trace get their lines.
class SubflowWatch {
 public:
  /// All must outlive it.
  SubflowWatch(SubflowSet& subflows, ControlFrames& controls, PathDuties& duties, SessionOwner& owner,
               const RecoveryTrace& trace)
      : subflows_(subflows), controls_(controls), duties_(duties), owner_(owner), trace_(trace) {}

  /// For the subflows to write to.
  SubflowEvents& events() { return events_; }
  /// Empties the queue. To be called after each call into a subflow.
  void settle(Time now);

 private:
  void onEvent(const SubflowEvent& event, Time now);
  void onStateChange(const Subflow& subflow);

  SubflowSet& subflows_;
  ControlFrames& controls_;
  PathDuties& duties_;
  SessionOwner& owner_;
  const RecoveryTrace& trace_;
  SubflowEvents events_;
};

}  // namespace braid
