#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "tunnel/lane/stream_options.h"

namespace braid {

class Budget;

/// Settings of the flows' queues, repair and order. Ranges are checked by the configuration reader.
struct LaneOptions {
  enum class Mode : uint8_t { kTun, kTap };
  Mode mode = Mode::kTun;          ///< what an inner packet is: kTun an IP packet, kTap an Ethernet frame
  Duration codelTarget{};          ///< of a flow's queue; 0: by the paths, see queueTarget()
  Duration codelInterval = 200ms;  ///< or more, see queueInterval(); RFC 8289 section 4.3 says 100 ms
  /// All flow queues of a peer together, whole buffers. By default more than a buffer for each of `maxFlows`: at the
  /// bound the fattest flow loses, so that a packet that is alone in its flow (a ping, a query, a SYN) never does.
  size_t queueBytes = 10 << 20;
  size_t maxFlows = 4096;         ///< inner flows sent to a peer at once, of both kinds together
  Duration flowIdle = 60s;        ///< a flow without packets for so long is forgotten
  Duration holdTime = 500ms;      ///< resequencing: longest wait for a missing packet
  size_t holdBytes = 12 << 20;    ///< resequencing: bytes held per peer, whole buffers
  Duration repairTime = 3s;       ///< a TCP packet is repaired for so long, then given up
  StreamOptions streams{};        ///< settings of the stream lane
  Budget* orderMemory = nullptr;  ///< bytes for what is known of the peers' flows; set by Tunnel
};

}  // namespace braid
