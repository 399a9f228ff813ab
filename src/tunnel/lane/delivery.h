#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace braid {

/// How an inner flow's packets are brought to the peer (docs/protocol.md section 6).
enum class Delivery : uint8_t {
  kReliable,  ///< TCP: in order, repaired for the repair time
  kOrdered,  ///< datagrams whose receiver takes reordering for loss: in order and repaired, with little patience
  kTimely,  ///< datagrams as they come: each at once, none sent again
  kStream,  ///< a range of a stream's bytes: repaired until it arrives or the stream ends
};

constexpr std::string_view deliveryName(Delivery delivery) {
  switch (delivery) {
    case Delivery::kReliable:
      return "reliable";
    case Delivery::kOrdered:
      return "ordered";
    case Delivery::kStream:
      return "stream";
    case Delivery::kTimely:
      break;
  }
  return "timely";
}

/// So long an ordered datagram is worth a wait and a repair, on a path with this smoothed RTT and variance: until a
/// loss there is noticed (9/8 of the RTT), its repair has come over it, and some jitter. Both sides take the slowest
/// path in use. Ours.
constexpr Duration orderPatience(Duration srtt, Duration rttvar) {
  return srtt * 3 / 2 + rttvar * 4 + std::chrono::milliseconds(10);
}
/// While nothing is known of the paths. Ours.
inline constexpr Duration kFirstPatience = std::chrono::milliseconds(100);

}  // namespace braid
