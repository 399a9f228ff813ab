#pragma once

#include <cstddef>

#include "base/budget.h"

namespace braid {

/// A part of a budget that nothing can be taken away from: who keeps it asks before.
class FirmKeeper final : public Keeper {
 public:
  using Keeper::Keeper;
  bool mayKeep(size_t more) { return makeRoom(more); }
  void set(size_t amount) { keep(amount); }

 private:
  void giveBack() override {}
};

/// What the streams of a session keep of the buffers and bytes that all share.
struct StreamMemory {
  FirmKeeper bytes;   ///< of what came and was not read, whole buffers (StreamOptions::memory)
  FirmKeeper held;    ///< buffers of it (PacketUse::kHeld)
  FirmKeeper queued;  ///< buffers that wait to be sent (PacketUse::kQueued)
};

}  // namespace braid
