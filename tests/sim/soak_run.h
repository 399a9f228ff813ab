#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/time.h"

namespace braid::sim {

/// The result of a long run of a pair of gateways.
struct SoakResult {
  // offences
  uint64_t wrongBytes = 0;
  /// Times that the peer was down, plus transfers without progress for a minute
  uint64_t resets = 0;
  uint64_t keptPackets = 0;  ///< gateways that had not freed all buffers at the end
  std::string broken;        ///< not empty: a livelock, or malformed packets
  // what happened
  uint64_t transferred = 0;  ///< bytes of all transfers
  uint64_t datagrams = 0;
  uint64_t rekeys = 0, flaps = 0, moves = 0, reloads = 0;
};

/// Runs two gateways over two slow paths that are always full, for `length` of virtual time. Keys
/// change every 60 s, paths fail one at a time, addresses change, and configurations are reloaded.
/// The seed decides everything. `eachMinute` is called after each minute.
SoakResult soakRun(uint64_t seed, Duration length, const std::function<void()>& eachMinute = {});

}  // namespace braid::sim
