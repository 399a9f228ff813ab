#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/time.h"
#include "tunnel/lane/lane_options.h"
#include "tunnel/protect/protect_options.h"
#include "tunnel/subflow/subflow_options.h"

namespace braid {

/// Settings of a session: those of its parts and its own. Ranges are checked by the configuration reader.
struct SessionOptions : SubflowOptions, LaneOptions, ProtectOptions {
  std::string scheduler = "earliest";
  Duration rekeyAfter = 3600s;  ///< a fresh handshake for new keys after so long; 0: never
  uint64_t rekeyPackets = uint64_t{1}
                          << 23;  ///< new keys after so many packets (RFC 9001 section 6.6: AES-GCM 2^23)
  size_t maxSubflows = 32;        ///< per peer
  bool sealLater = false;         ///< the driver seals what leaves (Datagram::unsealed)
};

}  // namespace braid
