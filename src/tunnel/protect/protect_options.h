#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "scheduler/recovery/recovery.h"
#include "tunnel/lane/delivery.h"
#include "tunnel/lane/trace.h"

namespace braid {

/// Inner flows whose recovery policy or delivery is not the tunnel's own. Unset fields match everything.
struct RecoveryClass {
  std::optional<uint8_t> protocol;     ///< IP protocol number
  std::optional<uint8_t> dscp;         ///< of the flow's first packet, 0..63
  uint16_t firstPort = 0;              ///< source or destination port from here on,
  uint16_t lastPort = 65535;           ///< up to here
  std::string policy;                  ///< name, see makeRecoveryPolicy()
  std::optional<Delivery> delivery{};  ///< of datagrams: kOrdered or kTimely; unset: as the flow itself says
};
/// Settings of proactive recovery. Ranges are checked by the configuration reader.
struct ProtectOptions {
  std::string recovery = "adaptive";           ///< policy of the flows that no class matches
  std::vector<RecoveryClass> recoveryClasses;  ///< the first that matches holds; at most kMaxRecoveryClasses
  size_t decodeBuffer =
      1024;  ///< packets of a subflow that the receiver keeps for decoding; 0: decodes nothing
  Budget* decodeMemory = nullptr;  ///< bytes for what is kept to decode; set by Tunnel
  TraceSink* trace = nullptr;      ///< set by Tunnel::setTrace()
};

}  // namespace braid
