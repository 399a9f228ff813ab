// Flows that are not yet proven to have two ends that hear each other. They cost a place among the half-open
// ones, no timer and no cached packet, and the shim does nothing for them but repeat a SYN (syn_replay.h).

#include "ackshim/ack_shim.h"

#include <optional>
#include <utility>

namespace braid {

namespace {
/// A half-open flow that does not fit is replaced by what is seen now when it is older. Ours: nobody can keep
/// another's flow from being joined for longer.
constexpr Duration kStaleOpening = 3s;
}  // namespace

AckShim::Verdict AckShim::onOpening(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s,
                                    bool fromHost) {
  if (s.isRst()) {
    if (!fromHost) syns_.cancel(key, hash);
    return Verdict::kPass;
  }
  uint32_t i = table_.findHalfOpen(key, hash);
  if (s.isSyn()) {
    onSyn(key, hash, i, packet, s, fromHost);
    return Verdict::kPass;
  }
  if (!s.isAck()) return Verdict::kPass;
  if (i == FlowTable::kNone) {
    join(key, hash, s, fromHost);
    return Verdict::kPass;
  }
  ShimFlow& flow = table_[i];
  if (!isProof(flow, s, fromHost)) {
    if (stamp_ - flow.lastUse >= kStaleOpening) join(key, hash, s, fromHost);
    return Verdict::kPass;
  }
  i = prove(i, hash);
  if (i != FlowTable::kNone) onProven(i, packet, s, fromHost);
  return Verdict::kPass;
}

// Also for simultaneous open (RFC 9293 section 3.5): both halves begin with a SYN, whichever comes first.
void AckShim::onSyn(const FlowKey& key, uint64_t hash, uint32_t i, ByteView packet, const TcpSegment& s,
                    bool fromHost) {
  auto dataOf = [&](ShimFlow& f) -> Half& { return fromHost ? f.out : f.in; };
  auto ackedOf = [&](ShimFlow& f) -> Half& { return fromHost ? f.in : f.out; };
  bool opened = i != FlowTable::kNone && !table_[i].joined;
  if (s.isAck()) {
    if (!opened) return;
    const Half& acked = ackedOf(table_[i]);
    if (!acked.known || s.ack < acked.base || s.ack > acked.nxt) return;
  } else {
    bool again = opened && dataOf(table_[i]).known && dataOf(table_[i]).base == s.seq + 1;
    bool other = opened && !dataOf(table_[i]).known;
    if (!again && !other) {
      if (!isEnabled(key)) return;
      i = open(key, hash, fromHost);
    }
  }
  ShimFlow& flow = table_[i];
  Half& data = dataOf(flow);
  if (!data.known || data.base != s.seq + 1) {
    data = Half{};
    data.begin(s, stamp_);
  } else if (data.timing && !data.timestamps) {
    data.timing = false;  // Karn
  }
  if (!fromHost) keepSyn(key, hash, packet, s);
  if (!s.isAck()) return;
  Half& acked = ackedOf(flow);
  acked.onAck(s, data.nxt, options_.gamma, stamp_);
  if (flow.isProvenByHandshake()) prove(i, hash);
}

// Of the local host alone: all its connections share the leg.
uint64_t AckShim::hostHash(const FlowKey& key) const {
  return table_.hash({key.family, 0, 0, 0, key.src, {}});
}

// A SYN of a live connection is for the host to judge (RFC 5961 section 4.2), and for nobody to repeat.
void AckShim::keepSyn(const FlowKey& key, uint64_t hash, ByteView packet, const TcpSegment& s) {
  if (!options_.replay || table_.findProven(key, hash) != FlowTable::kNone) return;
  const LegRtt* leg = legs_.find(hostHash(key));
  if (leg) syns_.onSyn(key, hash, packet, s, *leg, options_.replayMargin, now_);
}

// What a repeated SYN measured is not the flow's sample (Karn), but tells of a leg that is slower now.
void AckShim::onSynAnswered(const FlowKey& key, uint64_t hash) {
  std::optional<Duration> likely = syns_.onAnswer(key, hash, counters_, now_);
  if (!likely) return;
  legs_.note(hostHash(key), *likely);
  uint32_t i = table_.findHalfOpen(key, hash);
  if (i != FlowTable::kNone) table_[i].in.timing = false;
}

// What the handshake did not measure, other connections of the host did.
void AckShim::recallLeg(ShimFlow& flow) {
  uint64_t host = hostHash(flow.key);
  if (flow.in.rtt.hasSample()) return legs_.note(host, flow.in.rtt.smoothed());
  if (const LegRtt* leg = legs_.find(host)) flow.in.rtt = *leg;
}

uint32_t AckShim::open(const FlowKey& key, uint64_t hash, bool fromHost) {
  ++counters_.halfOpen;
  uint32_t i = table_.addHalfOpen(key, hash);
  table_[i].fromLocal = fromHost;
  table_[i].lastUse = stamp_;
  return i;
}

// Data after silence, of a connection whose beginning was not seen: nothing is known of its options.
void AckShim::join(const FlowKey& key, uint64_t hash, const TcpSegment& s, bool fromHost) {
  if (s.length == 0 || !isEnabled(key)) return;
  ShimFlow& flow = table_[open(key, hash, fromHost)];
  flow.joined = true;
  (fromHost ? flow.out : flow.in).begin(s, stamp_);
  (fromHost ? flow.in : flow.out).beginAt(s.ack, stamp_);
}

// The segment shows that both ends hear each other: the third of a handshake, or in the middle an ACK of data
// that were seen with the very sequence number that they acknowledged. Nobody else knows both numbers.
bool AckShim::isProof(ShimFlow& flow, const TcpSegment& s, bool fromHost) {
  Half& data = fromHost ? flow.out : flow.in;
  Half& acked = fromHost ? flow.in : flow.out;
  if (!data.known || !acked.known || !data.mayCarry(s) || !acked.mayAcknowledge(s.ack)) return false;
  if (!flow.joined) {
    acked.onAck(s, data.nxt, options_.gamma, stamp_);
    return flow.isProvenByHandshake();
  }
  if (fromHost != flow.fromLocal) {
    if (s.ack <= acked.una) return false;
    acked.onAck(s, data.nxt, options_.gamma, stamp_);
    return true;
  }
  data.onData(s, options_.inactivity, stamp_);
  if (s.ack > acked.una) acked.beginAt(s.ack, stamp_);
  return false;
}

uint32_t AckShim::prove(uint32_t halfOpen, uint64_t hash) {
  uint32_t old = table_.findProven(table_[halfOpen].key, hash);
  if (old != FlowTable::kNone) erase(old);
  if (table_.isFull()) {
    uint32_t victim = table_.victim([&](const ShimFlow& f) {
      bool quiet = !f.out.isOutstanding() && !f.in.isOutstanding();
      return quiet && (f.out.fin || f.in.fin || stamp_ - f.lastUse >= options_.inactivity);
    });
    if (victim == FlowTable::kNone) {
      ++counters_.tableFull;
      return FlowTable::kNone;
    }
    erase(victim);
  }
  uint32_t i = table_.prove(halfOpen, hash);
  ++counters_.proven;
  ShimFlow& flow = table_[i];
  if (!flow.joined) {
    flow.sack = flow.out.offersSack && flow.in.offersSack;
    // A SYN says how its sender's own windows are scaled: those that acknowledge the other's data.
    if (flow.out.offersShift && flow.in.offersShift) {
      std::swap(flow.out.shift, flow.in.shift);
    } else {
      flow.out.shift = flow.in.shift = 0;
    }
  }
  recallLeg(flow);
  flow.lastUse = stamp_;
  flow.timerAt = stamp_ + options_.idle;
  wheel_.arm(i, now_ + options_.idle);
  return i;
}

}  // namespace braid
