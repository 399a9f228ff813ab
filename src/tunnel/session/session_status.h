#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "tunnel/lane/flow_status.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// One session, for the operator.
struct SessionStatus {
  Duration age{};  ///< of the session
  unsigned keyEpoch = 0;
  std::string cipher;
  size_t innerMtu = 0;
  uint64_t innerSentPackets = 0, innerSentBytes = 0, innerReceivedPackets = 0, innerReceivedBytes = 0;
  uint64_t retransmitted = 0, heldPackets = 0, heldBytes = 0;
  uint64_t suppressions = 0;  ///< how often AMP sent over one subflow only
  std::string recovery;       ///< policy of flows in no class
  uint64_t blocks = 0;        ///< coding blocks begun as sender
  /// As receiver: parities that came, blocks that they completed, packets that they gave back, blocks evicted
  /// before they were complete.
  uint64_t paritiesReceived = 0, blocksDecoded = 0, packetsDecoded = 0, blocksEvicted = 0;
  std::vector<SubflowStatus> subflows;
  std::vector<FlowStatus> flows;
};

}  // namespace braid
