#include "ackshim/syn_replay.h"

#include <algorithm>

namespace braid {

void SynReplay::onSyn(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s,
                      const Patience& patience, Time now) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  Entry& entry = entries_[id];
  if (holds(key, id) && entry.seq != s.seq) wheel_.cancel(id);  // another attempt
  if (wheel_.isArmed(id) || s.length > 0 || packet.size() > kMaxSize || patience.first >= kSenderTimer)
    return;
  entry.key = key;
  entry.seq = s.seq;
  entry.first = entry.last = now;
  entry.patience = patience;
  entry.carried = true;
  entry.replays = 0;
  entry.size = static_cast<uint8_t>(packet.size());
  std::copy(packet.begin(), packet.end(), entry.bytes.begin());
  arm(id, now + entry.firstTimer());
}

// An answer sooner than half a round trip after the replay is one to the first SYN.
std::optional<Duration> SynReplay::onAnswer(const FlowKey& key, uint64_t hash, ShimCounters& counters,
                                            Time now) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  if (!holds(key, id)) return std::nullopt;
  const Entry& entry = entries_[id];
  wheel_.cancel(id);
  if (entry.replays == 0) return std::nullopt;
  bool soon = now - entry.last < entry.patience.rtt / 2;
  ++(soon ? counters[Actuator::kSynReplay].spurious : counters[Actuator::kSynReplay].useful);
  return now - (soon ? entry.first : entry.last);
}

void SynReplay::cancel(const FlowKey& key, uint64_t hash) {
  auto id = static_cast<uint32_t>(hash % kPlaces);
  if (holds(key, id)) wheel_.cancel(id);
}

}  // namespace braid
