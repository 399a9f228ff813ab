#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "scheduler/path/path_tiers.h"

namespace braid {

/// One subflow, for the operator.
struct SubflowStatus {
  unsigned id = 0;
  std::string uplink;
  std::string local, remote;
  std::string state;  ///< "validating", "active", "suspect", "failed", "closed"
  Duration srtt{}, rttvar{}, minRtt{};
  Duration queueDelay{};  ///< srtt less minRtt, at least 0: what packets wait for now; 0 without a sample
  uint64_t window = 0, inFlight = 0;
  double pacingRate = 0, deliveryRate = 0;
  uint64_t sentPackets = 0, sentBytes = 0, receivedPackets = 0, receivedBytes = 0;
  uint64_t lostPackets = 0, spuriousLosses = 0, retransmittedBytes = 0, ceMarks = 0;
  std::string ecn;        ///< "testing", "unknown", "capable", "failed": EcnValidator
  uint64_t timeouts = 0;  ///< PTOs (RFC 9002 section 6.2) with data that nothing else had delivered
  uint64_t mtu = 0;
  PathPreference preference{};
  bool resting = false;     ///< carries no data for now: a better uplink is usable
  bool suppressed = false;  ///< carries no data for now: AMP found its subflows at one bottleneck
  // Proactive recovery. Protection sent on this subflow:
  uint64_t copies = 0, parities = 0, protectionBytes = 0;
  // What became of this subflow's own packets:
  uint64_t protectedPackets = 0;  ///< copied or coded elsewhere before they were known to be lost
  uint64_t recovered = 0;  ///< of those, lost here and delivered by a copy or parity: useful protection
  uint64_t decoded = 0;    ///< of those, by a parity, as the peer says
  uint64_t useless = 0;    ///< protected and acknowledged here all the same
  double lossRate = 0;     ///< L (CoFUSO section 4.2.4)
  double lossMetric = 0;   ///< C_l (FUSO section III-B.1)
  double burst = 1;        ///< mean run of losses, packets
};

}  // namespace braid
