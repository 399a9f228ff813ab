#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/time.h"

namespace braid::sim {

/// What a long life of a pair of gateways came to.
struct SoakResult {
  // offences
  uint64_t wrongBytes = 0;
  uint64_t resets = 0;       ///< times the peer was down, and transfers that stood still for a minute
  uint64_t keptPackets = 0;  ///< gateways that kept buffers at their end
  std::string broken;        ///< not empty: a livelock, or malformed packets
  // what happened
  uint64_t transferred = 0;  ///< bytes of all transfers
  uint64_t datagrams = 0;
  uint64_t rekeys = 0, flaps = 0, moves = 0, reloads = 0;
};

/// Two gateways over two slow paths that are always full, for so much virtual time, with new keys every 60 s, paths that
/// fail one at a time, addresses that change, and reloads. All of it follows from the seed. `eachMinute` is
/// called after each minute.
SoakResult soakRun(uint64_t seed, Duration length, const std::function<void()>& eachMinute = {});

}  // namespace braid::sim
