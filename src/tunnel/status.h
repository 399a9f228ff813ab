#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ackshim/counters.h"
#include "base/drop.h"
#include "tunnel/session/session_status.h"

namespace braid {

/// A peer and its session; without a session the session's fields keep their defaults.
struct PeerStatus : SessionStatus {
  std::string name;
  std::string pin;
  bool up = false;
};

/// A metered uplink; bytes of the present period.
struct MeterStatus {
  std::string uplink;
  uint64_t used = 0, cap = 0;
  bool closed = false;  ///< at its cap
};

/// The ack shim (docs/ackshim.md).
struct ShimStatus {
  bool on = false;
  ShimCounters counters{};
  uint64_t flows = 0;          ///< tracked now
  uint64_t cachedPackets = 0;  ///< kept now
};

struct TunnelStatus {
  std::vector<MeterStatus> meters;
  std::vector<PeerStatus> peers;
  ShimStatus shim;
  DropCounts drops{};
  uint64_t buffersInUse = 0, buffersLimit = 0;
  uint64_t handshakes = 0;
};

}  // namespace braid
