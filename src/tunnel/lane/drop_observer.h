#pragma once

#include "base/bytes.h"

namespace braid {

/// Is shown the packets of TCP flows that the tunnel throws away for good: by AQM, at the byte bound, or
/// because they could not be repaired in time. Not those of a peer that is down.
class DropObserver {
 public:
  virtual ~DropObserver() = default;
  /// `packet` is the whole packet or frame, and is gone afterwards.
  virtual void onPacketDropped(ByteView) {}
};

}  // namespace braid
