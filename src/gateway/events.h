#pragma once

#include "base/time.h"
#include "gateway/log/log.h"
#include "gateway/state/history_recorder.h"
#include "tunnel/tunnel.h"

namespace braid {

/// What the events of the tunnel say may have changed.
struct EventChanges {
  bool peers = false;       ///< a peer came up, or is no longer up
  bool initiators = false;  ///< a peer may have come, left or moved to another address
  bool paths = false;     ///< the last path that answers may have fallen silent, or a first answers
  bool failures = false;  ///< a path has failed
};

/// Takes the tunnel's events; each is logged and kept for the history. If some were lost because
/// there were too many, everything may have changed.
EventChanges takeEvents(Tunnel& tunnel, HistoryRecorder& history, LogLimiter& log, Time now);

/// Logs an event of the gateway itself, and keeps it for the history.
void announce(const Event& event, HistoryRecorder& history);

}  // namespace braid
