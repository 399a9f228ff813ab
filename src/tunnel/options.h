#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ackshim/options.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "inet/prefix.h"
#include "scheduler/rate/controller.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/handshake.h"
#include "tunnel/trace.h"

namespace braid {

/// Inner flows whose recovery policy is not the tunnel's own. Unset fields match everything.
struct RecoveryClass {
  std::optional<uint8_t> protocol;  ///< IP protocol number
  std::optional<uint8_t> dscp;      ///< of the flow's first packet, 0..63
  uint16_t firstPort = 0;           ///< source or destination port from here on,
  uint16_t lastPort = 65535;        ///< up to here
  std::string policy;               ///< name, see makeRecoveryPolicy()
};
/// Most classes of a configuration.
inline constexpr size_t kMaxRecoveryClasses = 7;

/// Settings of the whole tunnel. Ranges are checked by the configuration reader.
struct TunnelOptions {
  enum class Mode : uint8_t { kTun, kTap };
  Mode mode = Mode::kTun;
  std::string controller = "auto";
  AmpOptions amp{};
  size_t initialWindow = 10;  ///< of a subflow, datagrams, at least 2
  std::string scheduler = "earliest";
  size_t outerMtu = 0;             ///< IP packet size on uplinks; 0: probe for it (RFC 8899)
  size_t maxOuterMtu = 1500;       ///< upper end of the probing
  Duration codelTarget{};          ///< of a flow's queue; 0: by the paths, see queueTarget()
  Duration codelInterval = 200ms;  ///< section 4.3 says 100 ms; radio paths have longer RTTs
  bool ecnProxy = true;            ///< speak ECN for local hosts that do not (ecn_proxy.h)
  bool ackShim = true;             ///< wake local TCP senders (docs/ackshim.md); kTun only
  AckShimOptions shim{};           ///< its settings
  size_t queueBytes = 4 << 20;     ///< all flow queues of a peer together
  size_t maxFlows = 4096;          ///< inner flows sent to a peer at once, of both kinds together
  Duration flowIdle = 60s;         ///< a flow without packets for so long is forgotten
  Duration holdTime = 500ms;       ///< resequencing: longest wait for a missing packet
  size_t holdBytes = 8 << 20;      ///< resequencing: bytes held per peer
  Duration repairTime = 3s;        ///< a TCP packet is repaired for so long, then given up
  Duration rekeyAfter = 3600s;     ///< new keys after so long
  uint64_t rekeyPackets = uint64_t{1}
                          << 23;      ///< and after so many packets (RFC 9001 section 6.6: AES-GCM 2^23)
  size_t maxSubflows = 32;            ///< per peer
  std::string recovery = "adaptive";  ///< policy of the flows that no class matches
  RecoveryOptions recoveryOptions{};  ///< of all policies
  std::vector<RecoveryClass> recoveryClasses;  ///< the first that matches holds; at most kMaxRecoveryClasses
  /// Least variance term of the PTO, as TCP's minimum RTO (RFC 6298 section 2.4; Linux: 200 ms): for
  /// comparison with TCP. 0: that of RFC 9002.
  Duration minRto{};
  TraceSink* trace = nullptr;  ///< set by Tunnel::setTrace()
  size_t decodeBuffer =
      1024;  ///< packets of a subflow that the receiver keeps for decoding; 0: decodes nothing
};

/// One peer.
struct PeerOptions {
  std::string name;
  Pin pin{};
  std::vector<Endpoint> endpoints;  ///< where to reach it; empty: it must come to us
  std::vector<Prefix> prefixes;     ///< inner addresses behind it: routed to it and enforced on what it sends
  Duration keepalive = 10s;         ///< idle subflows send a PING so often; 0: never
};

}  // namespace braid
