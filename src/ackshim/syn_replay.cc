#include "ackshim/syn_replay.h"

#include <algorithm>

namespace braid {

void SynReplay::onSyn(const FlowKey& key, uint64_t hash, ByteView packet, const LegRtt& leg, Duration margin,
                      Time now) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  if (packet.size() > kMaxSize || wheel_.isArmed(id)) return;
  Entry& entry = entries_[id];
  entry.key = key;
  entry.first = entry.last = now;
  entry.leg = leg.smoothed();
  entry.wait = std::max(leg.smoothed() + 4 * leg.variation(), 2 * leg.smoothed()) + margin;
  entry.replays = 0;
  entry.size = static_cast<uint8_t>(packet.size());
  std::copy(packet.begin(), packet.end(), entry.bytes.begin());
  wheel_.arm(id, now + entry.wait);
}

// An answer sooner than half a round trip after the replay is one to the SYN before it.
bool SynReplay::onAnswer(const FlowKey& key, uint64_t hash, ShimCounters& counters, Time now) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  const Entry& entry = entries_[id];
  if (!wheel_.isArmed(id) || !(entry.key == key)) return false;
  wheel_.cancel(id);
  if (entry.replays == 0) return false;
  ActuatorCounts& counts = counters[Actuator::kSynReplay];
  ++(now - entry.last < entry.leg / 2 ? counts.spurious : counts.useful);
  return true;
}

}  // namespace braid
