#pragma once

#include "base/bytes.h"

namespace braid {

/// Is shown the packets of TCP flows that the tunnel throws away for good: by AQM, at the byte bound, or
/// because they could not be repaired in time. Not those of a peer that is down. Called at once and not polled, for the
/// packet is gone after the call.
class DropObserver {
 public:
  virtual ~DropObserver() = default;
  /// `packet` is the whole packet or frame.
  virtual void onPacketDropped(ByteView) {}
};

}  // namespace braid
