#pragma once

#include "base/memory.h"
#include "tunnel/stream/registry.h"
#include "tunnel/stream/trace.h"

namespace braid {

/// What the sessions of all peers share. nullptr: there is none, and quotas have no bound.
struct SharedResources {
  MemoryQuota* orderMemory = nullptr;   ///< bytes: receive state of the peers' flows
  MemoryQuota* decodeMemory = nullptr;  ///< bytes: what is kept for decoding
  MemoryQuota* streamMemory = nullptr;  ///< bytes: what is held for the readers of streams
  StreamRegistry* streams = nullptr;    ///< where the driver meets streams; nullptr: no streams
  TraceSink* trace = nullptr;           ///< may be set and cleared at any time
};

}  // namespace braid
